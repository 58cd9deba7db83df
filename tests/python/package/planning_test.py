#!/usr/bin/env python3
"""Planning through the package gives what the programs answer, in full, and their errors."""

import dataclasses
import json
import os
from unittest import mock

import frazil
from support import TREE, WithFolder, main, run_frazil

WHAT_IF = {"stages": 4, "micro_batches": 8, "forward": "1ms", "backward_input": "1ms", "backward_weight": "1ms"}
# Python's own word; the package calls it `before`, or it is only in `raw`.
UNNAMED = {"from"}


def unread_keys(part, place=""):
    """Keys of an answer's JSON that no field has."""
    fields = {field.name for field in dataclasses.fields(part)}
    yield from (f"{place}.{key}" for key in part.raw if key not in fields | UNNAMED)
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        for one in value if isinstance(value, list) else value.values() if isinstance(value, dict) else [value]:
            if dataclasses.is_dataclass(one):
                yield from unread_keys(one, f"{place}.{field.name}")


class Plans(WithFolder):
    def setUp(self):
        super().setUp()
        self.question = {"profile": self.model, "cluster": self.pair, "batch": 16}
        self.words = ["--profile", self.model, "--cluster", self.pair, "--batch", 16]

    def test_a_ranking_is_the_programs_answer(self):
        ranking = frazil.plan(**self.question, top=3, explain=True, schedules=["zb-h1", "1f1b", "search"], procs=2)
        code, answer, _ = run_frazil("plan", *self.words, "--top", 3, "--explain", "--schedules", "zb-h1,1f1b,search", "--procs", 2)
        self.assertEqual((code, ranking.raw), (0, answer))
        self.assertEqual(list(unread_keys(ranking)), [])
        self.assertIsInstance(ranking.best.makespan_ns, int)
        self.assertEqual([one.summary for one in ranking.feasible], [one["summary"] for one in answer["feasible"]])
        self.assertEqual(ranking.best.devices[0].held.stash_bytes, answer["feasible"][0]["devices"][0]["held"]["stash_bytes"])

    def test_the_plan_of_a_ranking_is_the_file_and_can_be_simulated(self):
        ranking = frazil.plan(**self.question, out=self.folder / "plan.json")
        self.assertEqual(ranking.plan, json.loads((self.folder / "plan.json").read_text()))
        files = {"plan": ranking.plan, "profile": self.model, "cluster": self.pair}
        step = frazil.simulate(**files, explain=True, jitter=5, messages=True, overlap_reductions=True)
        self.assertIsInstance(step, frazil.PlanStep)
        self.assertEqual(step.makespan_ns, ranking.best.makespan_ns)
        path = step.critical_path
        self.assertEqual(sum(one["path_ns"] for one in path.devices) + path.transfers_ns + path.hops_ns, step.makespan_ns)
        self.assertEqual(list(unread_keys(step)), [])

    def test_a_profile_and_a_cluster_may_be_dicts(self):
        by_path = frazil.plan(**self.question)
        by_dict = frazil.plan(profile=json.loads(self.model.read_text()), cluster=json.loads(self.pair.read_text()), batch=16)
        self.assertEqual(by_path.raw, by_dict.raw)

    def test_other_questions_have_answers_of_their_own(self):
        ranking = frazil.plan(**self.question)
        held = frazil.plan(**self.question, held=ranking.plan, mask="0111", steps=1000)
        self.assertIsInstance(held, frazil.HeldPlan)
        self.assertEqual(held.stays, False)
        self.assertEqual(held.plan_file["mask"], "0111")
        named = frazil.plan(**self.question, planner="pipedream")
        self.assertIsInstance(named, frazil.PlannerComparison)
        self.assertEqual(named.frazil.makespan_ns, ranking.best.makespan_ns)
        graph = frazil.plan(graph=TREE / "tests/fuzz/seeds/work_graph/training.json", devices=2)
        self.assertIsInstance(graph, frazil.GraphCut)
        for answer in (held, named, graph):
            self.assertEqual(list(unread_keys(answer)), [])

    def test_a_forecast_gives_the_plans_that_are_held_by_their_first_step(self):
        head = {"format": "frazil.freeze_trace", "version": 1, "model_hash": frazil.plan(**self.question).plan["model_hash"], "steps": 100}
        head.update({"blocks": ["embed", "attention", "mlp", "head"], "events": 2, "batch_size": 16, "provenance": {}})
        masks = [{"step": 0, "kind": "mask", "mask": "1111"}, {"step": 50, "kind": "mask", "mask": "0111"}]
        trace = self.folder / "trace.jsonl"
        trace.write_text("".join(json.dumps(line) + "\n" for line in (head, *masks)))
        path = frazil.plan(**self.question, forecast=trace, samples=160, cache_memory=100_000_000)
        self.assertIsInstance(path, frazil.Trajectory)
        self.assertEqual(list(path.plans), [0, 50])
        self.assertEqual([path.plans[0]["mask"], path.plans[50]["mask"]], ["1111", "0111"])
        self.assertEqual((path.switches[0].before, path.fills[0].features.tier), (path.raw["switches"][0]["from"], "memory"))
        self.assertEqual(list(unread_keys(path)), [])

    def test_what_fits_nowhere_raises_with_the_answer(self):
        stale = self.folder / "plan.json"
        stale.write_text("{}")
        with self.assertRaises(frazil.NotFeasible) as caught:
            frazil.plan(profile=self.big, cluster=self.pair, batch=16, out=stale)
        error = caught.exception
        code, answer, told = run_frazil("plan", "--profile", self.big, "--cluster", self.pair, "--batch", 16)
        self.assertEqual((error.code, error.answer.raw), (code, answer))
        self.assertIn(told.strip(), error.sentence)
        self.assertIsNone(error.answer.plan)
        self.assertIsNone(error.answer.best)
        self.assertEqual(error.answer.relief[0].change, "memory_of_every_device_bytes")
        with self.assertRaises(frazil.NotFeasible) as caught:
            frazil.plan(profile=self.big, cluster=self.pair, batch=16)
        self.assertTrue(str(caught.exception).endswith("on every device"), caught.exception)


class Steps(WithFolder):
    def test_a_what_if_is_the_programs_answer(self):
        step = frazil.simulate(**WHAT_IF, schedule="zb-h1", hop="0.1ms", activation="1MiB", memory_limit=8 << 20)
        words = "--stages 4 --micro-batches 8 --schedule zb-h1 --forward 1ms --backward-input 1ms --backward-weight 1ms --hop 0.1ms"
        answer = run_frazil("simulate", *words.split(), "--activation", "1MiB", "--memory-limit", "8388608B")[1]
        self.assertIsInstance(step, frazil.WhatIf)
        self.assertEqual(step.raw, answer)
        self.assertEqual(list(unread_keys(step)), [])
        self.assertEqual((step.makespan_ns, step.fits), (28_200_000, True))

    def test_times_may_be_integers_of_nanoseconds_and_lists_by_device(self):
        by_text = frazil.simulate(stages=2, micro_batches=4, schedule="1f1b", forward="1ms,2ms", backward="3ms")
        by_number = frazil.simulate(stages=2, micro_batches=4, schedule="1f1b", forward=[1_000_000, "2ms"], backward=3_000_000)
        self.assertEqual(by_text, by_number)

    def test_sentences_that_may_be_repeated_are_flags_of_their_own(self):
        both = frazil.simulate(**WHAT_IF, schedule="1f1b", change=["device 2 x1.5", "straggler 1 +30%"])
        words = "--stages 4 --micro-batches 8 --schedule 1f1b --forward 1ms --backward-input 1ms --backward-weight 1ms".split()
        self.assertEqual(both.raw, run_frazil("simulate", *words, "--change", "device 2 x1.5", "--change", "straggler 1 +30%")[1])

    def test_schedules_are_compared(self):
        answer = frazil.simulate(**WHAT_IF, compare=True, fits=3)
        self.assertIsInstance(answer, frazil.Comparison)
        self.assertEqual(list(unread_keys(answer)), [])
        excluded = [one for one in answer.compared if one.infeasible]
        self.assertTrue(excluded and all(one.infeasible for one in excluded))

    def test_a_searched_order_and_a_recomputing_schedule_have_their_own_fields(self):
        searched = frazil.simulate(stages=2, micro_batches=4, schedule="search", budget=1000, forward="1ms", backward="2ms")
        self.assertEqual(searched.objective, "makespan")
        with self.assertRaises(frazil.NotFeasible) as caught:
            frazil.simulate(stages=2, micro_batches=2, schedule="varuna", forward="1ms", backward="2ms", activation="10MB", memory_limit="10MB")
        self.assertEqual((caught.exception.answer.fits, caught.exception.answer.recomputed_counts_as_kept), (False, True))
        for answer in (searched, caught.exception.answer):
            self.assertEqual(list(unread_keys(answer)), [])

    def test_any_program_can_be_asked(self):
        answer = frazil.ask("cluster", devices=4, preset="l4", out=self.folder / "four.json")
        self.assertEqual(answer["devices"], 4)
        imported = frazil.ask("import", "csv", self.folder / "small.csv", micro_batch_size=4, model="small", out=self.folder / "again.json")
        self.assertEqual(imported["model"], "small")
        self.assertEqual((self.folder / "again.json").read_text(), self.model.read_text())


class Errors(WithFolder):
    def expect(self, code, text, ask):
        with self.assertRaises(frazil.FrazilError) as caught:
            ask()
        self.assertEqual(caught.exception.code, code)
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))
        return caught.exception

    def test_an_unknown_keyword_is_refused_with_the_nearest_one(self):
        self.expect(2, "frazil simulate: found keyword micro_batch; did you mean micro_batches?", lambda: frazil.simulate(stages=2, micro_batch=4))
        self.expect(2, "frazil plan: found keyword profil; did you mean profile?", lambda: frazil.plan(profil="a.json"))
        self.expect(2, "found keyword json, expected one of", lambda: frazil.plan(json=True))

    def test_values_of_the_wrong_kind_are_refused(self):
        self.expect(2, "found True for batch, expected a value (N)", lambda: frazil.plan(batch=True))
        self.expect(2, "found 1.5 for forward, expected an integer of ns or text with a unit", lambda: frazil.simulate(forward=1.5))
        self.expect(2, "found --stages 0", lambda: frazil.simulate(**{**WHAT_IF, "stages": 0}, schedule="1f1b"))

    def test_that_a_program_ends_with_beside_its_answer_carry_the_answer(self):
        false = self.folder / "frazil-verify"
        (self.folder / "frazil").write_text("#!/bin/sh\n")
        told = '{"name": "verify", "flags": []}'
        false.write_text(f"#!/bin/sh\ncase $1 in --describe-flags) echo '{told}';; *) echo '{{\"verdict\": \"FAIL\"}}'; exit 4;; esac\n")
        for program in (false, self.folder / "frazil"):
            program.chmod(0o755)
        with mock.patch.dict(os.environ, {"FRAZIL_BIN": str(self.folder)}):
            error = self.expect(4, "frazil verify: ended with exit code 4", lambda: frazil.ask("verify"))
        self.assertEqual(error.answer, {"verdict": "FAIL"})

    def test_bad_input_carries_its_place(self):
        broken = self.folder / "broken.json"
        broken.write_text('{"format": "frazil.model",\n "version": 1}')
        error = self.expect(2, f"frazil plan: {broken}:", lambda: frazil.plan(profile=broken, cluster=self.pair, batch=16))
        self.assertEqual(error.file, str(broken))
        self.assertIsInstance(error.line, int)
        self.assertTrue(error.found and error.expected)


if __name__ == "__main__":
    main()
