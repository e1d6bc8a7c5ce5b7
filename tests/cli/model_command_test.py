#!/usr/bin/env python3
"""The command line of `gradwire model`: lists, tables and times, and one line for what is wrong.
Called with the path of the program."""
import glob
import json
import os
import subprocess
import sys
import unittest

from command_case import WAIT_S, CommandCase

PROGRAM = os.path.abspath(sys.argv.pop(1))
MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models")
HEADER = "layer,kind,weights,biases,macs\n"


class ModelTest(CommandCase):
    def model(self, *words, status=0):
        done = self.call(PROGRAM, "model", *words, status=status)
        self.assertEqual(done.stderr == "", status == 0)
        return done

    def refuse(self, line, *words):
        done = self.model(*words, status=2)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("gradwire: " + line), done.stderr)

    def test_list__has_every_table_of_the_project(self):
        names = sorted(os.path.basename(p)[: -len(".csv")] for p in glob.glob(f"{MODELS}/*.csv"))
        self.assertGreater(len(names), 15)
        models = json.loads(self.model("--json").stdout)
        self.assertEqual([model["name"] for model in models], names)
        lines = self.model().stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:]], names)
        vgg16 = ["vgg16", "16", "32", "138357544", "527.8", "15.470"]
        self.assertIn(vgg16, [line.split() for line in lines])

    def test_model__has_its_layers_and_totals(self):
        model = json.loads(self.model("resnet50", "--json").stdout)
        self.assertEqual(model["layers"], 107)
        self.assertEqual(len(model["table"]), 107)
        self.assertEqual(model["tensors"], 161)
        self.assertEqual(model["params"], 25557032)
        self.assertEqual(model["bytes"], 4 * model["params"])
        for total, column in (("macs", "macs"), ("bytes", "bytes")):
            self.assertEqual(model[total], sum(layer[column] for layer in model["table"]))
        self.assertNotIn("forward_us", model)
        self.assertNotIn("forward_us", model["table"][0])
        text = self.model("resnet50").stdout
        self.assertIn("conv1.bn", text)
        self.assertIn("107 layers, 161 tensors, 25557032 parameters, 97.5 MiB", text)

    def test_names_that_json_does_not_have__are_a_failure(self):
        name = os.fsencode(self.path("own")) + b"\xff.csv"
        with open(name, "wb") as file:
            file.write(HEADER.encode() + b"fc,fc,3,2,6\n")
        layer = self.file("layer.csv", HEADER.encode() + b"fc\xff,fc,3,2,6\n")
        for file in (name, layer):
            done = self.model(file, "--json", status=1)
            self.assertIn("no JSON", done.stderr)

    def test_output_that_is_closed__is_a_failure(self):
        for closed in ([1], [0, 1]):
            done = subprocess.run([PROGRAM, "model", "resnet50"], stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=WAIT_S, preexec_fn=lambda fds=closed: [os.close(fd) for fd in fds])
            self.assertEqual(done.returncode, 1)
            self.assertEqual(done.stderr, "gradwire: cannot write standard output: Bad file descriptor\n")

    def test_device__has_times_that_add_up(self):
        words = ["vgg16", "--device", "V100", "--batch", "47"]
        model = json.loads(self.model(*words, "--json").stdout)
        self.assertEqual((model["device"], model["batch"]), ("V100", 47))
        self.assertEqual(model["samples_per_s"], 235)
        self.assertAlmostEqual(model["forward_us"] + model["backward_us"], 200000, places=5)
        for time in ("forward_us", "backward_us"):
            self.assertAlmostEqual(model[time], sum(l[time] for l in model["table"]), places=5)
        text = self.model(*words).stdout
        self.assertIn("V100, batch 47: 235.0 samples/s", text)
        self.assertIn("66666.7 us forward and 133333.3 us backward", text)

    def test_file__is_a_table_of_the_users_own(self):
        own = self.file("own.csv", HEADER + "one,fc,10,2,1000000\ntwo,fc,0,0,0\n")
        model = json.loads(self.model(own, "--device", "2080Ti", "--json").stdout)
        self.assertEqual(model["name"], "own.csv")
        self.assertEqual(model["tensors"], 2)
        # As many MACs per second as ResNet-50.
        self.assertAlmostEqual(model["samples_per_s"], 294 * 4089184256 / 1e6, places=3)

    def test_errors__are_one_line(self):
        self.refuse("model: unknown model: resnet51; expected a file *.csv or one of", "resnet51")
        self.refuse("model: /no/such.csv: No such file", "/no/such.csv")
        bad = self.file("bad.csv", HEADER + "one,fc,ten,2,1\n")
        self.refuse(f"model: {bad}:2: weights must be a whole number", bad)
        bad = self.file("bad.csv", HEADER + "one,fc,2,2,1\ntwo,fc,2\0,2,1\n")
        self.refuse(f"model: {bad}:3: no text: there is a NUL byte", bad)
        self.refuse("model: device: unknown: abacus; expected 2080Ti", "vgg16", "--device", "abacus")
        for batch in ("0", "99999", "99999999999999"):
            self.refuse(f"--batch={batch}: expected a whole number from 1 to 65536", "vgg16", "--device", "V100", "--batch", batch)
        self.refuse("--batch=8: needs --device", "vgg16", "--batch", "8")
        self.refuse("--device=V100: of which model?", "--device", "V100")
        self.refuse("model: 'vgg19': one model", "vgg16", "vgg19")

    def test_help__has_an_example(self):
        text = self.model("--help").stdout
        self.assertIn("gradwire model resnet50 --device 2080Ti", text)


if __name__ == "__main__":
    unittest.main()
