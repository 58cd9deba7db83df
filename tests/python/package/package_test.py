#!/usr/bin/env python3
"""The package as a whole: its version, what it imports, how it finds the programs, and what it shows in a notebook."""

import ast
import os
import re
import subprocess
import sys
import unittest
import xml.etree.ElementTree
from unittest import mock

import frazil
from support import TREE, WithFolder, main

SVG = "{http://www.w3.org/2000/svg}svg"


class Package(unittest.TestCase):
    def test_has_the_version_of_the_programs(self):
        version = re.search(r"project\(frazil VERSION ([\d.]+)", (TREE / "CMakeLists.txt").read_text()).group(1)
        self.assertEqual(frazil.__version__, version)
        told = subprocess.run([os.environ["FRAZIL_BIN"] + "/frazil", "--version"], capture_output=True, text=True, check=True).stdout
        self.assertEqual(told.strip(), f"frazil {frazil.__version__}")

    def test_is_read_by_python_3_10(self):
        for path in sorted((TREE / "python").rglob("*.py")):
            ast.parse(path.read_text(encoding="utf-8"), str(path), feature_version=(3, 10))

    def test_imports_the_standard_library_alone(self):
        code = "import sys; before = set(sys.modules); import frazil; [getattr(frazil, n) for n in frazil.__all__ if n not in frazil.EXPORTING]\n"
        code += "print(*sorted({m.partition('.')[0] for m in set(sys.modules) - before}))"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
        self.assertEqual([name for name in told if name not in sys.stdlib_module_names and name != "frazil"], [])

    def test_names_what_needs_pytorch_where_it_is_there(self):
        told = "import sys, importlib.util as u; has = u.find_spec; u.find_spec = lambda name: {} if name == 'torch' else has(name)\n"
        for found, expected in ((None, []), (1, ["export_distillation", "export_model", "keyed_mask"])):
            code = told.format(found) + "import frazil; print(*[name for name in frazil.__all__ if name in frazil.EXPORTING], 'torch' in sys.modules)"
            names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
            self.assertEqual(names, [*expected, "False"])

    def test_exporting_without_pytorch_says_what_to_install(self):
        with mock.patch("importlib.util.find_spec", return_value=None):
            for name in frazil.EXPORTING:
                with self.assertRaisesRegex(ImportError, rf"^frazil.{name} needs PyTorch: install frazil\[export\]$"):
                    getattr(frazil, name)
        self.assertTrue(issubclass(frazil.ExportRefused, frazil.FrazilError))
        self.assertEqual(frazil.ExportRefused("no").code, 2)
        with self.assertRaises(AttributeError):
            getattr(frazil, "export_modle")  # noqa: B009


class Programs(unittest.TestCase):
    def test_are_found_on_the_path_where_no_folder_is_named(self):
        with mock.patch.dict(os.environ, {"PATH": os.environ["FRAZIL_BIN"]}):
            del os.environ["FRAZIL_BIN"]
            self.assertEqual(frazil.simulate(stages=1, micro_batches=1, schedule="gpipe", forward="1ms", backward="1ms").makespan_ns, 2_000_000)

    def test_that_are_missing_are_told_in_one_sentence(self):
        with mock.patch.dict(os.environ, {"PATH": "/nowhere", "FRAZIL_BIN": "/elsewhere"}):
            with self.assertRaisesRegex(frazil.FrazilError, "^found no program frazil in /elsewhere, which FRAZIL_BIN names, expected it there"):
                frazil.plan()
            del os.environ["FRAZIL_BIN"]
            with self.assertRaisesRegex(frazil.FrazilError, "^found no program frazil on PATH, expected it there"):
                frazil.simulate()
        with self.assertRaisesRegex(frazil.FrazilError, "^found no .*/frazil-fly, expected it beside frazil"):
            frazil.ask("fly")


class Notebooks(WithFolder):
    def show(self, answer):
        """What a notebook shows, as XML; nothing of it comes from elsewhere."""
        text = answer._repr_html_()
        self.assertEqual(re.findall(r"(?:href|src)=|url\((?!#)|@import", text), [])
        self.assertEqual(set(re.findall(r"https?://[^\"]*", text)) - {"http://www.w3.org/2000/svg"}, set())
        return xml.etree.ElementTree.fromstring(text)

    def test_show_the_step_of_a_ranking_and_of_a_plan(self):
        ranking = frazil.plan(profile=self.model, cluster=self.pair, batch=16, top=3)
        step = frazil.simulate(plan=ranking.plan, profile=self.model, cluster=self.pair)
        for path in (self.model, self.pair):
            path.unlink()  # pictures show what was asked, whatever becomes of the files
        for answer in (ranking, step):
            page = self.show(answer)
            self.assertEqual(len(page.findall(SVG)), 1)
            self.assertIn("makespan 91.584 ms", "".join(page.itertext()))
        self.assertEqual(len(self.show(ranking).findall("table/tbody/tr")), 3)

    def test_show_a_what_if_and_say_where_there_is_no_picture(self):
        question = {"stages": 4, "micro_batches": 8, "schedule": "zb-h1", "forward": "1ms", "backward": "2ms"}
        self.assertIsNotNone(self.show(frazil.simulate(**question, jitter=5, activation="1MiB", memory_limit="1GiB")).find(SVG))
        changed = self.show(frazil.simulate(**question, change="device 2 x1.5"))
        self.assertIsNone(changed.find(SVG))
        self.assertIn("no picture: `frazil export` draws no step with change", "".join(changed.itertext()))

    def test_show_tables_of_answers_without_a_step(self):
        compared = self.show(frazil.simulate(stages=4, micro_batches=8, compare=True, fits=3, forward="1ms", backward="2ms"))
        self.assertGreater(len(compared.findall("table/tbody/tr")), 10)
        graph = self.show(frazil.plan(graph=TREE / "tests/fuzz/seeds/work_graph/training.json", devices=2))
        self.assertEqual(len(graph.findall("table/tbody/tr")), 3)

    def test_escape_names(self):
        named = self.folder / "named.csv"
        named.write_text((self.folder / "small.csv").read_text().replace("embed", "<b>&embed"))
        frazil.ask("import", "csv", named, micro_batch_size=4, out=self.folder / "named.json")
        self.show(frazil.plan(profile=self.folder / "named.json", cluster=self.pair, batch=16))


if __name__ == "__main__":
    main()
