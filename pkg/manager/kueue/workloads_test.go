package kueue

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// Of several checks of ours, each keeps its state when another gets one; those of others aren't
// ours to state.
func TestCheckPatch(t *testing.T) {
	state := func(name string, is kueue.CheckState) kueue.AdmissionCheckState {
		return kueue.AdmissionCheckState{Name: kueue.AdmissionCheckReference(name), State: is, LastTransitionTime: metav1.NewTime(noon),
			RequeueAfterSeconds: ptr.To[int32](7), RetryCount: ptr.To[int32](2)}
	}
	w := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "w", UID: "uid", ResourceVersion: "5"}}
	w.Status.AdmissionChecks = []kueue.AdmissionCheckState{
		state("a", kueue.CheckStateReady), state("theirs", kueue.CheckStatePending), state("b", kueue.CheckStatePending),
	}
	next := kueue.AdmissionCheckState{Name: "b", State: kueue.CheckStateReady}
	content, err := checkPatch(w, next, func(name string) bool { return name != "theirs" })
	if err != nil {
		t.Fatal(err)
	}
	var patch kueue.Workload
	if err := json.Unmarshal(content, &patch); err != nil {
		t.Fatal(err)
	}
	if patch.UID != "uid" || patch.ResourceVersion != "5" {
		t.Errorf("of any state: %+v", patch.ObjectMeta)
	}
	got := patch.Status.AdmissionChecks
	if len(got) != 2 || got[0].Name != "a" || got[0].State != kueue.CheckStateReady || !got[0].LastTransitionTime.Time.Equal(noon) ||
		*got[0].RequeueAfterSeconds != 7 || got[0].RetryCount != nil || got[1].State != kueue.CheckStateReady {
		t.Errorf("%+v", got)
	}
}

func TestClip(t *testing.T) {
	for _, message := range []string{strings.Repeat("x", 2000), "x" + strings.Repeat("é", 1000), "short"} {
		if got := clip(message); !utf8.ValidString(got) || len(got) > 1003 || len(got) < min(len(message), 990) {
			t.Errorf("%d bytes of %d: %q", len(got), len(message), got)
		}
	}
}
