package schedule

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
)

var fleet = Options{
	Faults: 400, Span: 30 * time.Minute, Managers: []string{"m1", "m2"}, Workers: []string{"w1", "w2", "w3"},
	Losing: 40 * time.Second,
}

func draw(t *testing.T, seed uint64, o Options) []Fault {
	t.Helper()
	faults, err := Make(rand.New(rand.NewPCG(seed, 0)), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(faults) != o.Faults {
		t.Fatalf("%d faults, want %d", len(faults), o.Faults)
	}
	return faults
}

func TestASeedReplaysItsSchedule(t *testing.T) {
	if !reflect.DeepEqual(draw(t, 7, fleet), draw(t, 7, fleet)) {
		t.Error("the same seed made another schedule")
	}
	if reflect.DeepEqual(draw(t, 7, fleet), draw(t, 8, fleet)) {
		t.Error("another seed made the same schedule")
	}
}

// All kinds come, and no part of a target has two faults at a time.
func TestFaultsDoNotCollide(t *testing.T) {
	rows := map[Kind]row{}
	for _, r := range table {
		rows[r.kind] = r
	}
	for seed := range uint64(20) {
		until, losing, seen, lost := map[string]time.Duration{}, time.Duration(0), map[Kind]bool{}, false
		for _, f := range draw(t, seed, fleet) {
			for _, part := range (&deck{options: fleet}).parts(rows[f.Kind], f.Target) {
				if f.At < until[part] {
					t.Errorf("seed %d: %s at %s, but %s has a fault until %s", seed, f, f.At, part, until[part])
				}
				until[part] = f.At + f.For
			}
			if (f.Loses || rows[f.Kind].alone) && f.At < losing {
				t.Errorf("seed %d: %s at %s, while another worker is lost until %s", seed, f, f.At, losing)
			}
			if f.Loses || rows[f.Kind].alone {
				losing = f.At + f.For
			}
			seen[f.Kind], lost = true, lost || f.Loses
		}
		if !lost {
			t.Errorf("seed %d: no worker is ever lost", seed)
		}
		if len(seen) < len(table)-2 {
			t.Errorf("seed %d: %d of %d kinds", seed, len(seen), len(table))
		}
	}
}

func TestOnlySomeKinds(t *testing.T) {
	o := fleet
	o.Only, o.Losing = []Kind{KillEtcd, RotateSecret}, 0
	for _, f := range draw(t, 1, o) {
		if f.Kind != KillEtcd && f.Kind != RotateSecret || f.Loses {
			t.Errorf("drawn: %s", f)
		}
	}
}

func TestRefused(t *testing.T) {
	o := fleet
	o.Only = []Kind{"earthquake"}
	if _, err := Make(rand.New(rand.NewPCG(1, 0)), o); err == nil || !strings.Contains(err.Error(), `no kind of fault "earthquake"; there are "kill leader"`) {
		t.Errorf("%v", err)
	}
	if _, err := Make(rand.New(rand.NewPCG(1, 0)), Options{Faults: 1}); err == nil {
		t.Error("a schedule without workers")
	}
}
