"""The plot shows the figures that lie beside it."""

import importlib.util
import json
from xml.etree import ElementTree

from tests.docs.pages import ROOT


def test_the_plot_is_current() -> None:
    script = ROOT / "scripts" / "plot_growth.py"
    spec = importlib.util.spec_from_file_location("plot_growth", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    figures = json.loads((ROOT / "docs" / "growth.json").read_text(encoding="utf-8"))
    drawn = (ROOT / "docs" / "growth.svg").read_text(encoding="utf-8")
    assert drawn == module.plot(figures), "run python scripts/plot_growth.py --draw"
    texts = {element.text for element in ElementTree.fromstring(drawn).iter() if element.text}
    assert {label for label, _ in module.SERIES.values()} <= texts
    assert {(f["workload"], f["nodes"]) for f in figures} == {
        (name, n_nodes) for name in module.SERIES for n_nodes in module.N_NODES
    }
