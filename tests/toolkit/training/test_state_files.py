from torch_diode.toolkit.training.state_files import StateFiles


def test_a_run_continues_from_its_own_files_and_leaves_none_of_any_behind(tmp_path):
    states = StateFiles(tmp_path / "m[1].pt", teachers=1)
    other = tmp_path / "m1.pt.state"  # which the name would match as a pattern
    more = states.model.with_name("m[1].pt.teacher-2")
    for path in (states.own, *states.of_teachers, more, other):
        path.touch()
    assert states.continued() == [states.own, *states.of_teachers]
    assert states.there() == [states.own, *states.of_teachers, more]
    states.remove()
    assert list(tmp_path.iterdir()) == [other]
    assert states.continued() == []
