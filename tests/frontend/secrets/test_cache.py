from pathlib import Path

from frontend.secrets.cache import KEPT_SECONDS, FileCache, file_key


def test_a_value_is_kept_for_thirty_seconds_and_no_longer() -> None:
    now = [100.0]
    cache: FileCache[str] = FileCache(lambda: now[0])
    key = (1, 2, 3, 4, 5)
    assert cache.get(key) is None
    cache.put(key, "value")
    now[0] += KEPT_SECONDS - 0.001
    assert cache.get(key) == "value"
    now[0] += 0.001
    assert cache.get(key) is None
    assert KEPT_SECONDS == 30.0


def test_another_file_time_inode_size_or_mode_is_another_value() -> None:
    cache: FileCache[str] = FileCache(lambda: 0.0)
    key = (1, 2, 3, 4, 5)
    for other in ((9, 2, 3, 4, 5), (1, 9, 3, 4, 5), (1, 2, 9, 4, 5), (1, 2, 3, 9, 5), (1, 2, 3, 4, 9)):
        cache.put(key, "value")
        assert cache.get(other) is None
        assert cache.get(key) is None


def test_the_key_changes_with_the_file(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("a")
    first = file_key(file.stat())
    replacement = tmp_path / "g"
    replacement.write_text("b")
    replacement.rename(file)
    assert file_key(file.stat()) != first


def test_a_cache_does_not_show_what_it_keeps() -> None:
    cache: FileCache[str] = FileCache(lambda: 0.0)
    cache.put((1, 2, 3, 4, 5), "canary")
    assert "canary" not in repr(cache)
