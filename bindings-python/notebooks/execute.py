"""Executes the notebooks beside this file and compares what they print with what is stored in them.

``python execute.py FOLDER`` writes them, executed, to a folder; ``python execute.py --store`` writes them where they are. Pictures are not
compared: they differ with the version of what draws them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def printed(notebook: Any) -> list[str]:
    """What each cell of code prints, and the texts of its results, but those of pictures."""
    texts = []
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        text = ""
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stdout":
                text += output.text
            elif output.output_type in ("execute_result", "display_data") and "image/png" not in output.data:
                text += output.data.get("text/plain", "")
        texts.append(text)
    return texts


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: execute.py FOLDER | --store", file=sys.stderr)
        return 2
    store = arguments[0] == "--store"
    # Pictures go into the notebook, whatever is set here.
    os.environ.pop("MPLBACKEND", None)
    wrong = 0
    for path in sorted(HERE.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        before = printed(notebook)
        client = NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False)
        client.execute()
        # What depends on the machine and not on the notebook.
        notebook.metadata["language_info"] = {"name": "python"}
        target = path if store else Path(arguments[0]) / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, target)  # type: ignore[no-untyped-call]
        after = printed(notebook)
        pictures = sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", []))
        print(f"{path.name}: {len(after)} cells of code, {pictures} pictures")
        if not store and before != after:
            wrong += 1
            for number, (one, other) in enumerate(zip(before, after), 1):
                if one != other:
                    print(f"cell {number} printed\n{other}\nwhere the stored notebook has\n{one}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
