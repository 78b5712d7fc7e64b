"""Credentials of AWS that come from the instance or the container, and from nowhere else: every request to the store is
signed with them, and no secret is shown or stored."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.brokers.faulty_store import faulty_store
from tests.brokers.instance_metadata import SECRET, instance_metadata
from wirebook.landing.stores.locations import Location, location_of

pytestmark = pytest.mark.xdist_group("servers")

PROJECT = Path(__file__).resolve().parents[2]
EXAMPLES = PROJECT / "docs" / "examples"
OBSTORE, PYARROW, DELTALAKE = "object_store", "aws-sdk-cpp", "aws-sdk-rust"
"""What the libraries that ask for credentials call themselves."""
AMAZON = {"AWS_FORCE_CREDENTIAL_LOAD": "true"}
"""Lets `deltalake` ask by the SDK of AWS, as it does without AWS_ENDPOINT_URL; with it, it asks as `obstore` does."""
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


def contents(location: Location) -> bytes:
    assert not isinstance(location, Path)
    return b"\n".join(path.read_bytes() for path, _ in location.below())


@pytest.mark.faults
@pytest.mark.parametrize(
    ("kind", "lifetime", "variables", "clients"),
    [
        pytest.param("container", HOUR, {}, {OBSTORE, PYARROW}, id="container"),
        pytest.param("instance", MINUTE, {}, {OBSTORE, PYARROW}, id="instance-with-credentials-about-to-expire"),
        pytest.param("instance", HOUR, AMAZON, {OBSTORE, PYARROW, DELTALAKE}, id="instance-as-at-amazon"),
    ],
)
def test_every_request_is_signed_with_the_credentials_of_the_instance(
    tmp_path: Path, s3: str, bucket: str, kind: str, lifetime: timedelta, variables: dict[str, str], clients: set[str]
) -> None:
    source = location_of(f"{bucket}/raw")
    for path in (EXAMPLES / "captures").iterdir():
        (source / path.name).write_bytes(path.read_bytes())  # type: ignore[union-attr]
    wirebook, output = str(Path(sys.executable).parent / "wirebook"), ""
    catalogue = ["--catalog", str(EXAMPLES / "bikes.xreg.json")]
    with faulty_store(s3) as store, instance_metadata(tmp_path, lifetime) as metadata:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
        environment |= {"HOME": str(tmp_path), "AWS_ENDPOINT_URL": store.url, "AWS_REGION": "us-east-1"}
        environment |= {"PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{tmp_path}/catalogue.db"}
        environment |= metadata.environment(kind) | variables
        for target, options in (("delta", []), ("iceberg", ["--iceberg-catalog", "lake"])):
            to = f"{bucket}/{target}"
            land = ["land", f"{bucket}/raw", "--to", to, *catalogue, *options, "--local", "--json"]
            for arguments, read in ((land, 5), (land, 0), (["show", to], None), (["maintain", to], None)):
                command = [wirebook, *arguments]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr
                output += done.stdout + done.stderr
                assert read is None or json.loads(done.stdout.splitlines()[-1])["read"] == read
        signers, issued = set(store.signers), set(metadata.issued)
    assert metadata.clients == clients
    assert signers
    assert signers <= issued
    stored = contents(location_of(f"{bucket}/delta")) + contents(location_of(f"{bucket}/iceberg"))
    assert b"iceberg" in stored
    for secret in (SECRET, *(key for key, _ in issued)):
        assert secret not in output
        assert secret.encode() not in stored
