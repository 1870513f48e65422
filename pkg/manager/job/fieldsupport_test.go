package job

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jobferry/jobferry/pkg/mirror/recentfields"
)

// TestWhatIsRememberedOfAWorker: for as long as it's the same one; what it drops, for a while.
func TestWhatIsRememberedOfAWorker(t *testing.T) {
	both := recentfields.Fingerprints{"spec.x": "1", "spec.y": "2"}
	for name, row := range map[string]struct {
		then    func(*world, *fakeWorker)
		dropped []string
		keepsX  bool
	}{
		"at once":           {func(*world, *fakeWorker) {}, []string{"spec.y"}, true},
		"upgraded":          {func(_ *world, v *fakeWorker) { v.view.Version = "v1.37.0" }, nil, false},
		"connected again":   {func(w *world, v *fakeWorker) { v.view.Observed = w.clock.Now() }, nil, false},
		"a while later":     {func(w *world, _ *fakeWorker) { w.clock.Step(fieldSupportExpires) }, nil, true},
		"registered again":  {func(w *world, v *fakeWorker) { w.fieldSupport.forget(v.Name()) }, nil, false},
		"keeps it now":      {func(w *world, v *fakeWorker) { w.fieldSupport.learn(v, both, nil) }, nil, true},
		"another does":      {func(w *world, _ *fakeWorker) { w.fieldSupport.learn(w.worker("b"), both, nil) }, []string{"spec.y"}, true},
		"drops both by now": {func(w *world, v *fakeWorker) { w.fieldSupport.learn(v, both, both.Paths()) }, []string{"spec.x", "spec.y"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			v := w.worker("a")
			w.fieldSupport.learn(v, both, []string{"spec.y"})
			row.then(w, v)
			dropped, _ := w.fieldSupport.ask(v, both)
			if diff := cmp.Diff(row.dropped, dropped); diff != "" {
				t.Error(diff)
			}
			if len(w.fieldSupport.drops(v)) != len(row.dropped) {
				t.Errorf("drops: %v", w.fieldSupport.drops(v))
			}
			if _, all := w.fieldSupport.ask(v, recentfields.Fingerprints{"spec.x": "3"}); all != row.keepsX {
				t.Errorf("keeps spec.x: %t", all)
			}
		})
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	w := newWorld(t)
	v := w.worker("a")
	for i := range 3 * maxSupportPaths {
		path := "spec.x" + time.Duration(i).String()
		w.fieldSupport.learn(v, recentfields.Fingerprints{path: ""}, []string{path})
	}
	if n := len(w.fieldSupport.drops(v)); n > maxSupportPaths+1 {
		t.Errorf("%d paths", n)
	}
}
