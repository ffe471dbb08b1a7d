"""Loops are compiled in the background, and nothing that goes wrong there gets out."""

import logging

import pytest

from berth.config.settings import Settings
from berth.scheduling.compiled import Group
from berth.service import warming
from berth.service.warming import warm_up


def test_every_group_is_warmed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    warmed = []
    monkeypatch.setattr(Group, "warm_up", lambda group, exercise: warmed.append((group.name, exercise)))
    warm_up(Settings()).join()
    assert [name for name, _ in warmed] == ["batch", "stream", "look"]


def test_what_goes_wrong_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(Group, "warm_up", broken)
    with caplog.at_level(logging.WARNING, warming.__name__):
        warm_up(Settings()).join()
    assert [record.message for record in caplog.records] == [
        "loops could not be compiled, Python does without"
    ]
