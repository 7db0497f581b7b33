"""Settings of schedules: checked, merged, amended; and what bad ones are told."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.seed import new_job
from tests.support.timing import said
from windlass.core.moments import DAY, SECOND
from windlass.core.schedules.cron import parse_cron
from windlass.core.schedules.firing import new_schedule, paused, reconfigured, resumed
from windlass.core.schedules.schedule import ScheduleSettings, amended, merge, settings, template, without
from windlass.core.schedules.ticks import CatchUp
from windlass.errors import InvalidInput, InvalidOption, PayloadTooLarge

NOW = 1_767_225_600 * SECOND
NOTHING = ScheduleSettings()
NO_DURATION = "is not a duration such as 500ms, 30s, 5m, 2h or 7d, a number of seconds, or a timedelta"

BAD: list[tuple[dict[str, Any], str]] = [
    ({"cron": "0 0 31 2 *"}, "cron: '0 0 31 2 *' never matches: there is no such day (position 5)"),
    ({"cron": "* 25 * * *"}, "cron: '* 25 * * *': '25' at position 3 is no hour (0-23)"),
    ({"cron": ""}, "cron: '' has 0 fields, not 5 (from the minute) or 6 (seconds first)"),
    ({"cron": 5}, "cron: must be text such as '0 9 * * 1-5', not int"),
    ({"cron": "@daily", "every": 60}, "every: cannot be given together with cron"),
    ({"every": 60, "tz": "UTC"}, "tz: applies to cron, not to every"),
    ({"every": 0}, "every: must be at least 1s, not 0"),
    ({"every": True}, f"every: True {NO_DURATION}"),
    ({"every": "soon"}, f"every: 'soon' {NO_DURATION}"),
    ({"cron": "@daily", "tz": "Mars/Base"}, "tz: 'Mars/Base' is not a time zone that is known here"),
    ({"cron": "@daily", "tz": "../../etc/passwd"}, "tz: '../../etc/passwd' is not a time zone that is known here"),
    ({"catch_up": "some"}, "catch_up: must be one of one, all, none, not 'some'"),
    ({"overlap": "no"}, "overlap: must be True or False, not 'no'"),
    ({"jitter": 100_000}, "jitter: must be at most 1d, not 100000"),
    ({"jitter": -1}, "jitter: must be from 0 to 100 years, not -1"),
    ({"at": 9}, "at: is not a setting of a schedule; there are catch_up, cron, every, jitter, overlap, tz"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_setting_is_refused_with_its_name_and_limit(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as reported:
        settings(new_job(), **options)
    assert str(reported.value).startswith(message)


@pytest.mark.parametrize(
    "fields",
    [{"run_at": NOW}, {"delay": 5}, {"idempotency_key": "k"}, {"expires_at": NOW}, {"parents": ("x",)}],
    ids=lambda fields: next(iter(fields)),
)
def test_what_belongs_to_one_job_is_no_part_of_a_schedule(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidOption, match="belongs to one job"):
        template(new_job(**fields))


def test_a_large_payload_or_what_is_no_job_is_refused() -> None:
    with pytest.raises(PayloadTooLarge, match="of a schedule's job is 70,002 bytes, the limit is 65,536"):
        template(new_job(payload='"' + "x" * 70_000 + '"'))
    with pytest.raises(InvalidOption, match=r"job: is not a job but str; make it with task.job"):
        template("report")


def test_lengths_may_be_seconds_text_or_timedeltas() -> None:
    same = [settings(every=every) for every in (300, 300.0, "5m", timedelta(minutes=5))]
    assert len(set(same)) == 1


def test_by_default_one_run_is_made_up_and_runs_may_overlap() -> None:
    rules = merge(said(cron="@daily"), NOTHING)
    assert (rules.catch_up, rules.overlap, rules.jitter, rules.tz) == (CatchUp.ONE, True, 0, "UTC")


def test_the_last_word_on_the_times_replaces_the_one_before() -> None:
    first = amended(NOTHING, settings(cron="@daily", tz="Asia/Tokyo"))
    second = amended(first, settings(every=60))
    assert (second.cron, second.every, second.tz) == (None, 60 * SECOND, "Asia/Tokyo")
    third = amended(second, settings(cron="@hourly"))
    assert (third.cron, third.every) == (parse_cron("@hourly"), None)


def test_an_operator_may_turn_off_what_the_code_turns_on() -> None:
    declared = said(cron="@daily", overlap=False, jitter=60, catch_up="all")
    rules = merge(declared, settings(overlap=True, jitter=0, catch_up="one"))
    assert (rules.overlap, rules.jitter, rules.catch_up) == (True, 0, CatchUp.ONE)


def test_what_was_said_is_taken_back_by_name_or_wholly() -> None:
    changed = settings(cron="@daily", jitter=5)
    assert without(changed, ["jitter"]) == settings(cron="@daily")
    assert without(changed, []) == NOTHING
    with pytest.raises(InvalidOption, match="'colour' is not a setting of a schedule"):
        without(changed, ["colour"])


def test_every_change_makes_older_decisions_void() -> None:
    first = new_schedule("s", NOW, declared=said(), changed=NOTHING)
    changed = reconfigured(first, NOW, first.declared, settings(jitter=5))
    asleep = paused(changed)
    awake = resumed(asleep, NOW + DAY)
    assert [each.revision for each in (first, changed, asleep, awake)] == [0, 1, 2, 3]


def test_the_next_runs_are_those_of_the_timetable_and_none_while_it_is_paused() -> None:
    schedule = new_schedule("s", NOW, declared=said(cron="0 9 * * 1-5", tz="Europe/Berlin"), changed=NOTHING)
    shown = [each.isoformat() for each in schedule.upcoming(3)]
    assert shown == ["2026-01-01T08:00:00+00:00", "2026-01-02T08:00:00+00:00", "2026-01-05T08:00:00+00:00"]
    assert schedule.in_words == "At 09:00 on Monday through Friday (Europe/Berlin)"
    assert paused(schedule).upcoming(3) == ()
