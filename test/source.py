# SPDX-License-Identifier: Apache-2.0
"""Our own Python files as text, and what can be read of them without running anything."""

import ast
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PACKAGE = 'xinfer_ros'
GENERATED = {'action', 'msg', 'srv'}


@dataclass(frozen=True)
class Facts:
    """
    What the checks ask of a file, so that it is parsed once and its tree is not kept.

    :param imports: line and full dotted name of everything that it imports, wherever it stands
    :param names: line and full dotted name of every name and attribute, imports resolved
    :param calls: the same of what is called
    :param switches: line and name of every keyword of a call that is not given as off
    """

    imports: tuple[tuple[int, str], ...]
    names: tuple[tuple[int, str], ...]
    calls: tuple[tuple[int, str], ...]
    switches: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Source:
    """A Python file: its path in the package or in test/, and its text."""

    path: str
    text: str

    @functools.cached_property
    def facts(self) -> Facts:
        """Return what the checks ask of it."""
        nodes = list(ast.walk(ast.parse(self.text)))
        known, calls = _known(nodes), [node for node in nodes if isinstance(node, ast.Call)]
        return Facts(
            imports=tuple(_imports(self, nodes)),
            names=tuple(_named(nodes, known)),
            calls=tuple(_named([call.func for call in calls], known)),
            switches=tuple(
                (call.lineno, keyword.arg)
                for call in calls
                for keyword in call.keywords
                if keyword.arg
                and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
            ),
        )

    @property
    def folder(self) -> str:
        """Return the top folder, or the name of a module that stands in none."""
        return self.path.split('/')[0].removesuffix('.py')

    @property
    def module(self) -> str:
        """Return the dotted name."""
        return f'{PACKAGE}.{self.path.removesuffix(".py").replace("/", ".")}'.removesuffix(
            '.__init__'
        )


def read_sources(folder: Path) -> list[Source]:
    """Return every file below a folder but the generated ones."""
    files = [(path.relative_to(folder), path) for path in sorted(folder.rglob('*.py'))]
    return [
        Source(name.as_posix(), path.read_text())
        for name, path in files
        if name.parts[0] not in GENERATED
    ]


def _imports(source: Source, nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and full dotted name of everything that a file imports."""
    parents = source.module.split('.')
    if not source.path.endswith('__init__.py'):
        parents = parents[:-1]
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = parents[: len(parents) + 1 - node.level] if node.level else []
            prefix = '.'.join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, f'{prefix}.{alias.name}') for alias in node.names)


def _known(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """Return what names that a file imports stand for."""
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                known[alias.asname or alias.name.split('.')[0]] = (
                    alias.name if alias.asname else alias.name.split('.')[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                known[alias.asname or alias.name] = f'{node.module}.{alias.name}'
    return known


def _named(nodes: Iterable[ast.AST], known: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yield line and full dotted name of those nodes that are a name or an attribute of one."""
    for node in nodes:
        parts: list[str] = []
        inner: ast.AST = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield inner.lineno, '.'.join([known.get(inner.id, inner.id), *reversed(parts)])


def reach(sources: list[Source], start: str) -> set[str]:
    """Return every module that an import of one brings in, ours and others, however deep."""
    by_name = {source.module: source for source in sources}
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        while name and name not in by_name and name.startswith(f'{PACKAGE}.'):
            name = name.rpartition('.')[0]  # a name inside a module
        if name in found:
            continue
        found.add(name)
        if name in by_name:
            waiting += [other for _, other in by_name[name].facts.imports]
            waiting.append(name.rpartition('.')[0])
    return found
