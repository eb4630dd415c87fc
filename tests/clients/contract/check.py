"""Tests a server with requests that schemathesis generates from openapi.yaml.

    python check.py openapi.yaml URL EXAMPLES
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
# Data is restored in the first phase, but not in the second, whose requests build on each other.
RUNS = {"examples,coverage,fuzzing": {"ZARRD_REFILL": "1"}, "stateful": {}}


def run(document, url, examples, phases, environment):
    command = [str(Path(sys.executable).with_name("st")), "--config-file", str(HERE / "schemathesis.toml"), "run", document]
    command += ["--url", url, "--phases", phases, "--max-examples", examples, "--seed", "1", "--generation-deterministic"]
    command += ["--no-color", "--continue-on-failure", "--warnings", "off"]
    environment = {**os.environ, **environment, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE), "ZARRD_URL": url}
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run(command, env=environment, cwd=directory, capture_output=True, text=True, check=False)
    print(done.stdout)
    if done.returncode:
        sys.exit(f"schemathesis found something, or failed:\n{done.stdout}{done.stderr}")


def main(document, url, examples):
    os.environ["ZARRD_URL"] = url
    for phases, environment in RUNS.items():
        subprocess.run([sys.executable, str(HERE / "hooks.py")], check=True)
        run(document, url, examples, phases, environment)


if __name__ == "__main__":
    main(*sys.argv[1:])
