# SPDX-License-Identifier: Apache-2.0
"""Published tables beside simulated ones: the tables, the claims, and the page."""

from dataclasses import replace
from pathlib import Path

import pytest

from xinfer_ros.errors import ConfigError
from xinfer_ros.fleet.claims import claims
from xinfer_ros.fleet.paper_tables import ABLATIONS, FleetCase, PaperTables, load_paper_tables
from xinfer_ros.fleet.report_table import ReportTable, beside
from xinfer_ros.fleet.reproduction import POLICIES, Reproducer, Reproduction, wanted_for
from xinfer_ros.fleet.reproduction_page import Picture, check_folder, page_text, write_page
from xinfer_ros.fleet.reproduction_tables import comparison_tables
from xinfer_ros.fleet.rounds import RoundPool
from xinfer_ros.predict.calibration import load_calibration
from xinfer_ros.sim.scenario import Round

from .fake_rounds import erc_record, perfect_reproduction, round_record

AT_18 = FleetCase(workload='alternating', robots=18)


@pytest.fixture
def paper() -> PaperTables:
    return load_paper_tables()


@pytest.fixture
def sim(paper: PaperTables) -> Reproduction:
    return perfect_reproduction(paper)


def test_published_tables_are_read_under_our_names(paper: PaperTables) -> None:
    assert paper.attainment_pct[AT_18]['slack_gate'] == (89.99, 90.33, 93.63)
    assert paper.gain[AT_18]['strict_gating'] == 21.34
    assert paper.full_pct[FleetCase(workload='multiple', robots=15)] == 96.01
    assert paper.goodput_difference[FleetCase(workload='multiple', robots=15)] == 12.28
    assert paper.arrival_aware[AT_18].tight_pct == (68.7, 93.0)
    assert paper.erc['parcel'] == {'xinfer': 14, 'slack_gate': 12, 'fifo': 10, 'edf': None}
    assert paper.mae_ms[20] == 2.79
    assert paper.decision_us[8] == (41, 63)


def test_every_cell_of_the_tables_is_simulated_with_every_policy(paper: PaperTables) -> None:
    wanted = set(wanted_for(paper))
    cases = set(paper.attainment_pct)
    assert len(cases) == 8 + 2 + 6
    assert {(case, policy) for case in cases for policy in POLICIES} <= wanted
    assert {(case, name) for case in paper.gain for name in ABLATIONS} <= wanted


def test_numbers_that_agree_make_every_claim_hold(paper: PaperTables, sim: Reproduction) -> None:
    assert [claim for claim in claims(paper, sim) if not claim.holds] == []


def _verdicts(paper: PaperTables, sim: Reproduction) -> str:
    return '\n'.join(f'{c.text}: {c.found}' for c in claims(paper, sim) if not c.holds)


def test_ablation_of_the_wrong_sign_is_named(paper: PaperTables, sim: Reproduction) -> None:
    rounds = {**sim.rounds, (AT_18, 'strict_gating'): [round_record(attainment=0.99)]}
    verdicts = _verdicts(paper, replace(sim, rounds=rounds))
    assert 'not strict_gating at alternating 18' in verdicts
    assert 'strict gating costs attainment everywhere: 7 of 8; least -3.0' in verdicts


def test_equal_capacities_are_no_order(paper: PaperTables, sim: Reproduction) -> None:
    ercs = {**sim.ercs, ('alternating', 'slack_gate', 'paper'): erc_record(18)}
    verdicts = _verdicts(paper, replace(sim, ercs=ercs))
    assert 'XInfer 18, Slack-Gate 18, FIFO 14, EDF 12' in verdicts


def test_cells_too_far_off_are_counted(paper: PaperTables, sim: Reproduction) -> None:
    off = {
        (case, policy): [round_record(attainment=0.2, mae_ms=4.0)]
        for case, policy in sim.rounds
        if case.workload == 'alternating' and policy in ('fifo', 'edf', 'xinfer')
    }
    verdicts = _verdicts(paper, replace(sim, rounds={**sim.rounds, **off}))
    assert 'attainment of table 10, alternating: 8 of 32' in verdicts
    assert '4.0 at 8, 4.0 at 18, 4.0 at 20' in verdicts


def test_cell_shows_both_numbers_and_the_difference() -> None:
    assert beside(96.6, 94.34) == '96.6→94.3 -2.3'
    assert beside(None, 94.34) == '94.3'
    assert beside(-0.03, 0.0) == '0.0→0.0 +0.0'
    assert beside(148, 161.7, 0) == '148→162 +14'


def test_table_is_written_as_markdown() -> None:
    table = ReportTable(title='T', columns=('a', 'b'), rows=(('x|y', '1'),), note='N.')
    assert table.markdown() == '## T\n\nN.\n\n| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n'


def test_brackets_are_shown_on_a_terminal(paper: PaperTables, sim: Reproduction) -> None:
    titles = [str(table.rich().title) for table in comparison_tables(paper, sim)]
    assert any('\\[%]' in title or '[%]' in title for title in titles)


def test_page_tells_how_to_make_it_again_and_holds_every_table(
    paper: PaperTables, sim: Reproduction
) -> None:
    tables = comparison_tables(paper, sim)
    page = page_text(tables, [Picture(file='a.png', caption='A')], sim, 'xinfer tables --paper')
    assert 'Made by `xinfer tables --paper`' in page
    assert 'Calibration `paper`, 3 rounds of 210 s' in page
    assert 'seed 1, 2, 3' in page
    assert '![A](reproduction/a.png)' in page
    for table in tables:
        assert f'## {table.title}\n' in page
    assert '| alternating 18 | 50.0→50.0 +0.0 |' in page
    assert page.index('Which claims hold') < page.index('## Pictures') < page.index('Table 8')
    lines = [line for line in page.splitlines() if line.startswith('|')]
    assert all(line.endswith(' |') for line in lines)


def test_page_is_written_with_small_pictures(
    tmp_path: Path, paper: PaperTables, sim: Reproduction
) -> None:
    page = write_page(tmp_path, comparison_tables(paper, sim), paper, sim, 'xinfer')
    pictures = sorted((tmp_path / 'reproduction').glob('*.png'))
    assert page == tmp_path / 'reproduction.md'
    assert len(pictures) == 4
    for picture in pictures:
        assert f'](reproduction/{picture.name})' in page.read_text()
        assert picture.read_bytes().startswith(b'\x89PNG')
        assert 10_000 < picture.stat().st_size < 150_000


def test_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    assert check_folder(tmp_path / 'docs') == tmp_path / 'docs'
    (tmp_path / 'file').write_text('')
    with pytest.raises(ConfigError, match='is a file; name a folder'):
        check_folder(tmp_path / 'file')
    with pytest.raises(ConfigError, match='there is no folder'):
        check_folder(tmp_path / 'a' / 'b')


def test_each_fleet_is_simulated_once() -> None:
    started: list[int] = []
    done: list[object] = []
    reproducer = Reproducer(
        RoundPool(1),
        load_calibration('paper'),
        Round(warm_up_s=1.0, end_s=3.0),
        (1, 2),
        started.append,
        done.append,
    )
    wanted = [(AT_18, 'xinfer'), (AT_18, 'strict_gating'), (AT_18, 'xinfer')]
    reproducer.simulate(wanted)
    reproducer.simulate(wanted)
    assert started == [4, 0]
    assert len(done) == 4
