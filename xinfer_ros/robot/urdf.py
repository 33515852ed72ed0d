# SPDX-License-Identifier: Apache-2.0
"""The limits of joints, as the URDF of a robot states them."""

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from xinfer_ros.errors import ConfigError

MAX_CHARACTERS = 20_000_000
_WITH_POSITION_LIMIT = ('revolute', 'prismatic')


@dataclass(frozen=True, slots=True, kw_only=True)
class JointLimit:
    """
    Where one joint may be, and how fast it may move.

    :param lower: least position, -inf without limit [rad or m]
    :param upper: largest position, inf without limit [rad or m]
    :param velocity: largest speed, inf without limit [rad/s or m/s]
    """

    lower: float = -math.inf
    upper: float = math.inf
    velocity: float = math.inf


UrdfLimits: TypeAlias = Mapping[str, JointLimit]


def urdf_limits(text: str) -> UrdfLimits:
    """
    Return the limits of every joint that moves by itself; fixed and mimicking ones are left out.

    The narrower of ``limit`` and the soft limits of ``safety_controller`` counts.

    :param text: a URDF, expanded if it was written in xacro
    :raises ConfigError: if it is none, or a limit is missing or no number
    Source: the URDF specification of joints, https://wiki.ros.org/urdf/XML/joint.
    """
    limits: dict[str, JointLimit] = {}
    for joint in _root(text).findall('joint'):
        kind, name = joint.get('type'), joint.get('name')
        if not name:
            raise ConfigError('the URDF has a joint without a name')
        if name in limits:
            raise ConfigError(f'the URDF has joint {name} twice')
        if joint.find('mimic') is not None:
            continue
        if kind == 'continuous':
            limits[name] = _of_continuous(joint, name)
        elif kind in _WITH_POSITION_LIMIT:
            limits[name] = _of_bounded(joint, name)
    return limits


class _NoDoctype(ElementTree.TreeBuilder):
    """Builds the tree, but lets nothing define entities, which can grow without end."""

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:
        """Refuse a document type."""
        raise ConfigError('the URDF declares a DOCTYPE; a robot description needs none: remove it')


def _root(text: str) -> ElementTree.Element:
    if len(text) > MAX_CHARACTERS:
        raise ConfigError(f'the URDF has {len(text)} characters; {MAX_CHARACTERS} are allowed')
    try:
        root = ElementTree.fromstring(text, ElementTree.XMLParser(target=_NoDoctype()))
    except (ElementTree.ParseError, ValueError) as error:
        raise ConfigError(f'the URDF is not XML ({error}): {text[:40]!r}') from None
    if root.tag != 'robot':
        raise ConfigError(f'the URDF begins with <{root.tag}>; <robot> is expected')
    return root


def _of_continuous(joint: ElementTree.Element, name: str) -> JointLimit:
    limit = joint.find('limit')
    if limit is None:
        return JointLimit()
    return JointLimit(velocity=_number(limit, 'velocity', name, math.inf))


def _of_bounded(joint: ElementTree.Element, name: str) -> JointLimit:
    limit = joint.find('limit')
    if limit is None:
        raise ConfigError(
            f'the URDF gives joint {name} no <limit>, which a {joint.get("type")} joint needs'
        )
    lower, upper = _number(limit, 'lower', name, 0.0), _number(limit, 'upper', name, 0.0)
    soft = joint.find('safety_controller')
    if soft is not None:
        lower = max(lower, _number(soft, 'soft_lower_limit', name, lower))
        upper = min(upper, _number(soft, 'soft_upper_limit', name, upper))
    velocity = _number(limit, 'velocity', name, math.inf)
    return JointLimit(lower=lower, upper=upper, velocity=velocity)


def _number(element: ElementTree.Element, attribute: str, name: str, default: float) -> float:
    """Return an attribute, the default if it is not there."""
    text = element.get(attribute)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise ConfigError(
            f'the URDF gives joint {name} {attribute} {text!r}; a number is expected; '
            'expand xacro first'
        )
    return value
