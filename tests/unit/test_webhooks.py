"""Webhooks: signatures, addresses that are refused, what is selected, and the ids of deliveries."""

from typing import Any

import pytest

from tests.unit.webhook_cases import PUBLIC, REFUSED
from windlass.core.webhooks.addresses import is_allowed, parse_networks, refusal
from windlass.core.webhooks.delivery import delivery, delivery_id, mac_of
from windlass.core.webhooks.signature import Secret, new_secret, signed_headers
from windlass.core.webhooks.webhook import StoredWebhook, check_url, settings_of
from windlass.errors import ConfigError, InvalidInput, InvalidOption


def test_a_signature_is_the_one_of_the_standard_webhooks_convention() -> None:
    secret, id_ = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    headers = signed_headers([secret], id_, 1614265330, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": id_,
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_new_secret_has_256_random_bits_and_shows_itself_in_no_record() -> None:
    secret = new_secret(lambda count: b"\xff" * count)
    assert secret == "whsec_" + "/" * 42 + "8="
    assert secret not in repr(Secret(secret))
    assert secret not in repr(_webhook(secrets=(Secret(secret),)))


@pytest.mark.parametrize("address", REFUSED)
def test_addresses_that_are_not_public_are_refused(address: str) -> None:
    assert refusal(address) is not None


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_not(address: str) -> None:
    assert refusal(address) is None


def test_a_setting_allows_networks_and_the_ipv4_addresses_within_ipv6_ones() -> None:
    allowed = parse_networks("10.1.0.0/16, ::1", "s")
    assert [refusal(each, allowed) for each in ("10.1.2.3", "::ffff:10.1.2.3", "::1", "64:ff9b::a01:203")] == [
        None
    ] * 4
    assert refusal("10.2.0.1", allowed) == "10.2.0.1 is private"
    assert refusal("::ffff:10.2.0.1", allowed) == "::ffff:10.2.0.1 is private"
    assert not is_allowed("93.184.216.34", allowed)
    with pytest.raises(ConfigError, match=r"s: '10\.1\.2\.3/16'"):
        parse_networks("10.1.2.3/16", "s")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "https://",
        "example.com",
        "https://a:b@example.com/",
        "https://example.com/#part",
        "https://exa mple.com/",
        "https://example.com/\r\nx: y",
        "https://example.com:99999/",
        "https://example..com/",
        f"https://{'a' * 64}.com/",
        "https://[::ffff:169.254.169.254]/",
        "https://127.0.0.1/",
        "http://example.com/",
        "https://example.com/" + "a" * 2000,
        7,
    ],
)
def test_wrong_urls_are_refused(url: Any) -> None:
    with pytest.raises(InvalidOption, match="url"):
        check_url(url, ())


@pytest.mark.parametrize(
    "options",
    [
        {"events": ["job.failed"]},
        {"events": "job.dead"},
        {"queues": ["a b"]},
        {"types": [""]},
        {"contents": 1},
        {"max_attempts": 0},
        {"timeout": 31},
        {"hide": ["."]},
        {"queue": ["a"]},
        {"queues": [f"q{number}" for number in range(101)]},
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(options))):
        settings_of(**options)


def test_every_given_selection_must_match() -> None:
    some = settings_of(events=["job.dead"], queues=["mail"], types=["img.*", "pay"])
    assert some.selects("job.dead", "mail", "img.resize")
    assert some.selects("job.dead", "mail", "pay")
    assert not some.selects("job.completed", "mail", "pay")
    assert not some.selects("job.dead", "other", "pay")
    assert not some.selects("job.dead", "mail", "payout")
    assert settings_of().selects("job.cancelled", "any", "any")


def test_old_secrets_sign_until_the_overlap_is_over_and_a_second_rotation_prolongs_none() -> None:
    first = _webhook(secrets=(Secret("a"),))
    second = first.rotated("b", now=100, overlap=50)
    third = second.rotated("c", now=120, overlap=1000)
    assert [third.secrets_at(now) for now in (120, 149, 150)] == [("c", "b", "a"), ("c", "b", "a"), ("c", "b")]
    assert third.rotated("d", now=130, overlap=0).secrets == (Secret("d"),)


def test_the_id_of_a_delivery_follows_from_webhook_job_and_moment() -> None:
    ids = {delivery_id(webhook, job, at) for webhook in "ab" for job in "xy" for at in (10**15, 10**15 + 1)}
    assert len(ids) == 8
    assert delivery_id("a", "x", 10**15) in ids
    assert sorted([delivery_id("a", "x", 10**15), delivery_id("z", "z", 2 * 10**15)])[1].startswith("01d1")


def test_the_code_of_a_delivery_fits_it_and_its_event_alone() -> None:
    webhook, event = _webhook(), {"type": "job.dead", "data": {"job": "x"}}
    job = delivery("ops", webhook, "id-1", event)
    code = mac_of(webhook.mac_key, "id-1", event)
    assert code in job.payload
    assert code != mac_of(webhook.mac_key, "id-2", event)
    assert code != mac_of(webhook.mac_key, "id-1", {**event, "type": "job.completed"})
    assert (job.queue, job.tenant, job.tags) == ("windlass.webhooks", "ops", ("webhook:ops",))


def _webhook(**fields: Any) -> StoredWebhook:
    made = {
        "id": "1",
        "url": "https://example.com/",
        "settings": settings_of(),
        "secrets": (),
        "mac_key": Secret("s"),
    }
    return StoredWebhook(**{**made, **fields})
