package change

import "testing"

func TestSet(t *testing.T) {
	sets := Sets{}
	sets.Add("w", Change{Kinds: Room})
	sets.Add("w", Change{Admission, "team"})
	clone := sets.Clone()
	joined := Sets{}
	joined.Join(sets)
	sets.Add("w", Change{Devices, "team"})
	for _, of := range []Sets{clone, joined} {
		if s := of["w"]; s.Of("team") != Room|Admission || s.Of("other") != Room || of["none"].Of("team") != 0 {
			t.Errorf("%+v", s)
		}
	}
}

func TestTake(t *testing.T) {
	for _, c := range []struct {
		name  string
		has   []Change
		takes Change
		took  bool
		left  Kinds // for the namespace "team"
	}{
		{"another kind", []Change{{Kinds: Room}}, Change{Kinds: Devices}, false, Room},
		{"one of two kinds", []Change{{Kinds: Room | Devices}}, Change{Kinds: Devices}, true, Room},
		{"of a namespace", []Change{{Admission, "team"}, {Admission, "other"}}, Change{Admission, "team"}, true, 0},
		{"of another namespace", []Change{{Admission, "team"}}, Change{Admission, "other"}, false, Admission},
		{"of all that has one", []Change{{Admission | Room, "team"}}, Change{Kinds: Admission}, true, Room},
	} {
		var s Set
		for _, has := range c.has {
			s.Add(has)
		}
		if took := s.Take(c.takes); took != c.took || s.Of("team") != c.left {
			t.Errorf("%s: took %t, left %b", c.name, took, s.Of("team"))
		}
		if s.Take(c.takes) {
			t.Errorf("%s: it's taken twice", c.name)
		}
	}
}
