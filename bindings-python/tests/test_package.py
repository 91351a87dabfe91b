"""The package as it was installed."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import metaroce


def test_it_is_the_wheel_and_not_the_source_tree() -> None:
    assert "site-packages" in Path(metaroce.__file__).parts
    files = {file.name for file in importlib.metadata.files("metaroce") or []}
    assert {"py.typed", "_metaroce.pyi", "_metaroce.abi3.so", "plot.py", "scapy.py"} <= files
    about = importlib.metadata.metadata("metaroce")
    assert about["License-Expression"] == "Apache-2.0 OR MIT"
    assert set(about.get_all("Provides-Extra") or []) == {"plot", "scapy"}


def test_everything_that_is_named_is_there() -> None:
    assert sorted(set(metaroce.__all__)) == sorted(metaroce.__all__)
    for name in metaroce.__all__:
        value = getattr(metaroce, name)
        assert value.__doc__ or name == "Event", name


def test_extras_are_not_imported_unasked() -> None:
    code = "import sys, metaroce; print([name for name in ('matplotlib', 'scapy', 'pandas') if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == "[]"
