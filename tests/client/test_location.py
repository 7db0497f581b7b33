"""Where the store of an app is: given, else the variable, else the settings file, else windlass.db; absolute."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from windlass import App, ConfigError
from windlass.store.open import absolute

OWN = "store = 'sqlite:///own.db'\nblobs = 'own'\n"
PROJECT = "[tool.windlass]\nstore = 'sqlite:///project.db'\nblobs = 'project'\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one; no variable names a store."""
    for name in ("WINDLASS_STORE", "WINDLASS_BLOBS"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Another folder."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return folder


def enqueue_one(app: App) -> None:
    @app.task(type="t")
    def work(text: str) -> None: ...

    try:
        work.enqueue("x")
    finally:
        app.close()


def test_what_is_given_wins_over_the_variable_over_the_own_file_over_the_project_over_the_default(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(app: App) -> tuple[str, str | None]:
        return app.store, app.blobs

    assert found(App()) == (f"sqlite:///{here}/windlass.db", None)
    (here / "pyproject.toml").write_text(PROJECT)
    assert found(App()) == (f"sqlite:///{here}/project.db", f"{here}/project")
    (here / "windlass.toml").write_text(OWN)
    assert found(App()) == (f"sqlite:///{here}/own.db", f"{here}/own")
    monkeypatch.setenv("WINDLASS_STORE", "sqlite:///variable.db")
    monkeypatch.setenv("WINDLASS_BLOBS", "variable")
    assert found(App()) == (f"sqlite:///{here}/variable.db", f"{here}/variable")
    given = App("sqlite:///given.db", blobs="given")
    assert found(given) == (f"sqlite:///{here}/given.db", f"{here}/given")


@pytest.mark.parametrize("named_by", ["call", "variable", "file", "default"])
def test_a_process_that_changes_its_folder_keeps_its_store(
    here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    if named_by == "variable":
        monkeypatch.setenv("WINDLASS_STORE", "sqlite:///jobs.db")
    if named_by == "file":
        (here / "windlass.toml").write_text("store = 'sqlite:///jobs.db'\n")
    app = App("sqlite:///jobs.db") if named_by == "call" else App()
    monkeypatch.chdir(elsewhere)
    enqueue_one(app)
    assert list(elsewhere.iterdir()) == []
    assert (here / ("windlass.db" if named_by == "default" else "jobs.db")).exists()


@pytest.mark.parametrize("named_by", ["call", "variable", "file"])
def test_a_process_that_changes_its_folder_keeps_its_blobs(
    here: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch, named_by: str
) -> None:
    if named_by == "variable":
        monkeypatch.setenv("WINDLASS_BLOBS", "./blobs")
    if named_by == "file":
        (here / "windlass.toml").write_text("blobs = './blobs'\n")
    app = App("sqlite:///jobs.db", blobs="./blobs" if named_by == "call" else None)

    @app.task(type="t")
    def work(text: str) -> None: ...

    monkeypatch.chdir(elsewhere)
    handle = work.enqueue("x" * 100_000)
    assert app.jobs.get(handle.id).payload["text"] == "x" * 100_000
    app.close()
    assert list(elsewhere.iterdir()) == []
    assert (here / "blobs").is_dir()


def test_a_variable_that_is_set_after_the_app_was_made_changes_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = App()
    monkeypatch.setenv("WINDLASS_STORE", "sqlite:///later.db")
    assert app.store == f"sqlite:///{here}/windlass.db"


def test_making_an_app_and_a_job_and_showing_it_reads_no_file(here: Path) -> None:
    (here / "windlass.toml").write_text("this is not TOML")
    app = App()

    @app.task
    def work(number: int) -> None: ...

    app.schedule("daily", work.job(1), every=60)
    assert repr(app) == "App(store not looked up yet, 1 tasks)"
    with pytest.raises(ConfigError, match=r"windlass\.toml: "):
        work.enqueue(1)
    with pytest.raises(ConfigError, match=r"windlass\.toml: "):
        _ = app.store
    app.close()


def test_the_file_is_read_once(here: Path) -> None:
    (here / "windlass.toml").write_text(OWN)
    app = App()
    assert app.store == f"sqlite:///{here}/own.db"
    (here / "windlass.toml").write_text("store = 'sqlite:///another.db'\n")
    assert (app.store, repr(app)) == (f"sqlite:///{here}/own.db", f"App('sqlite:///{here}/own.db', 0 tasks)")


@pytest.mark.parametrize("value", ["", "   "])
@pytest.mark.parametrize("name", ["WINDLASS_STORE", "WINDLASS_BLOBS"])
def test_a_variable_that_is_set_but_empty_is_refused_by_its_name(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=f"^{name} is set but empty: give it a value, or leave it out$"):
        App()
    assert list(here.iterdir()) == []


def test_an_address_that_is_given_or_written_but_empty_is_refused(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"^store of App\(\.\.\.\) is set but empty"):
        App("")
    with pytest.raises(ConfigError, match=r"^blobs of App\(\.\.\.\) is set but empty"):
        App("sqlite:///jobs.db", blobs="")
    (here / "windlass.toml").write_text("store = ''\n")
    with pytest.raises(ConfigError, match=rf"^store in {here}/windlass\.toml is set but empty"):
        enqueue_one(App())
    assert [path.name for path in here.iterdir()] == ["windlass.toml"]


def test_what_is_no_text_is_refused(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"^store of App\(\.\.\.\) should be a string such as .*, not PosixPath"):
        App(here / "jobs.db")  # type: ignore[arg-type]


def test_a_misspelt_setting_is_not_taken_for_none(here: Path) -> None:
    (here / "windlass.toml").write_text("sotre = 'sqlite:///jobs.db'\n")
    with pytest.raises(
        ConfigError,
        match=r"windlass\.toml: unknown setting 'sotre'; there are store, blobs, log_format, webhook_networks",
    ):
        enqueue_one(App())
    assert [path.name for path in here.iterdir()] == ["windlass.toml"]


def test_an_app_for_tests_reads_neither_variables_nor_files(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "windlass.toml").write_text("this is not TOML")
    for name in ("WINDLASS_STORE", "WINDLASS_BLOBS"):
        monkeypatch.setenv(name, "")
    app = App.testing()
    enqueue_one(app)
    assert (app.store, app.blobs) == ("sqlite:///:memory:", None)


@pytest.mark.parametrize(
    ("url", "made"),
    [
        ("sqlite:///jobs.db", "sqlite:////srv/jobs.db"),
        ("sqlite:///./a/jobs.db", "sqlite:////srv/a/jobs.db"),
        ("sqlite:///../jobs.db", "sqlite:////srv/../jobs.db"),
        ("sqlite:///a%20b.db?durability=relaxed&driver=sqlite3", "sqlite:////srv/a%20b.db?durability=relaxed&driver=sqlite3"),
        ("sqlite:///a%3Fb.db", "sqlite:////srv/a%3Fb.db"),
        ("sqlite:////var/jobs.db", "sqlite:////var/jobs.db"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("postgresql://db/jobs", "postgresql://db/jobs"),
        ("unix:///run/redis.sock", "unix:///run/redis.sock"),
        ("rubbish", "rubbish"),
    ],
)  # fmt: skip
def test_only_a_relative_file_is_changed(url: str, made: str) -> None:
    assert absolute(url, "/srv") == made
    assert absolute(made, "/elsewhere") == made


def test_a_folder_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "50% #1? ü"
    folder.mkdir()
    monkeypatch.chdir(folder)
    app = App("sqlite:///jobs.db")
    monkeypatch.chdir(tmp_path)
    enqueue_one(app)
    assert (folder / "jobs.db").exists()


def test_a_folder_that_sqlite_cannot_name_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigError, match=r"%FF/jobs\.db: SQLite cannot open a path that is not UTF-8"):
        enqueue_one(App("sqlite:///jobs.db"))


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite:///~/jobs.db", r"~ is not the home folder here; write the whole path"),
        ("sqlite:/srv/jobs.db", r"three or four slashes"),
        ("sqlite:jobs.db", r"three or four slashes"),
        ("file:jobs.db", r"unknown store 'file'"),
        ("jobs.db", r"is not the address of a store: for an SQLite file, write sqlite:///jobs.db"),
        ("sqlite:///jobs.db/", r"names no file"),
        ("sqlite:///missing/../jobs.db", r"there is no folder .*/missing/\.\."),
        ("sqlite:///jobs%00.db", r"zero byte"),
    ],
)
def test_what_looks_like_a_file_and_would_be_another_is_refused(here: Path, url: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        enqueue_one(App(url))
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("ending", ["\n", "\r\n", " ", "\t"])
def test_a_line_end_that_came_with_a_variable_is_refused(
    here: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    monkeypatch.setenv("WINDLASS_STORE", f"sqlite:///jobs.db{ending}")
    with pytest.raises(ConfigError, match="WINDLASS_STORE has white space around it"):
        enqueue_one(App())
    monkeypatch.setenv("WINDLASS_STORE", f"postgresql://shop:hidden@localhost/shop{ending}")
    with pytest.raises(ConfigError, match="white space") as caught:
        App()
    assert "hidden" not in str(caught.value)
    assert list(here.iterdir()) == []


def test_a_folder_before_dots_that_is_a_link_is_followed(here: Path, elsewhere: Path) -> None:
    (elsewhere / "deep").mkdir()
    (here / "link").symlink_to(elsewhere / "deep")
    enqueue_one(App("sqlite:///link/../jobs.db"))
    assert (elsewhere / "jobs.db").exists()


def test_blobs_in_the_home_folder_are_written_out(here: Path) -> None:
    with pytest.raises(ConfigError, match="~ is not the home folder here"):
        App("sqlite:///jobs.db", blobs="~/blobs").offload()
    assert list(here.iterdir()) == []


REMOVED = """
import os, sys
os.rmdir(os.getcwd())
from windlass import App, ConfigError
App("sqlite:////srv/jobs.db", blobs="/srv/blobs")
for make in (lambda: App("sqlite:///jobs.db"), lambda: App("sqlite:////srv/j.db", blobs="b"), lambda: App().store):
    try:
        make()
    except ConfigError as error:
        print(error)
"""


def test_without_a_current_folder_only_a_relative_address_is_refused(here: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WINDLASS_")}
    command = [sys.executable, "-c", REMOVED]
    ran = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=True, timeout=60)
    advice = "is relative, and the current folder was removed"
    assert ran.stdout.splitlines() == [
        f"sqlite:///jobs.db {advice}; write an absolute address",
        f"blobs 'b' {advice}",
        f"sqlite:///windlass.db {advice}; write an absolute address",
    ]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            "postgresql+asyncpg://me:p%40s@db:5432/shop?ssl=require",
            "postgresql://me:p%40s@db:5432/shop?sslmode=require",
        ),
        ("postgresql+psycopg://me@db/shop?sslmode=require", "postgresql://me@db/shop?sslmode=require"),
        ("postgresql+psycopg2://me:x@/shop?host=/run/postgresql", "postgresql://me:x@%2Frun%2Fpostgresql/shop"),
        ("postgresql:///shop?host=db&port=5433&schema=jobs", "postgresql://db:5433/shop?schema=jobs"),
        ("postgresql+psycopg:///shop?host=a:1&host=b:2", "postgresql://a:1,b:2/shop"),
        ("postgres+psycopg_async://me@db/shop", "postgres://me@db/shop"),
        ("postgres://me@db/shop", "postgres://me@db/shop"),
        ("sqlite+aiosqlite:///jobs.db", "sqlite:////here/jobs.db"),
        ("sqlite+pysqlite:////srv/jobs.db?durability=relaxed", "sqlite:////srv/jobs.db?durability=relaxed"),
        ("sqlite+pysqlcipher:///jobs.db", "sqlite+pysqlcipher:///jobs.db"),
        ("redis+sentinel://a,b/0", "redis+sentinel://a,b/0"),
        ("postgresql+asyncpg://[bad/shop", "postgresql://[bad/shop"),
    ],
)
def test_addresses_as_sqlalchemy_spells_them_name_the_same_database(given: str, found: str) -> None:
    assert absolute(given, "/here") == found


def test_an_app_opens_the_store_of_an_address_for_sqlalchemy(address: str) -> None:
    drivers = {"postgresql": "postgresql+asyncpg", "sqlite": "sqlite+aiosqlite"}
    scheme, colon, rest = address.partition(":")
    enqueue_one(App(drivers.get(scheme, scheme) + colon + rest))
    app = App(address)
    assert [job.type for job in app.jobs.list()] == ["t"]
    app.close()
