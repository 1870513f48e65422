package dispatch

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// words says an action in a few words, for tables.
func words(action Action) string {
	switch a := action.(type) {
	case SideBySide:
		all := make([]string, 0, len(a.Actions))
		for _, action := range a.Actions {
			all = append(all, words(action))
		}
		return strings.Join(all, " & ")
	case Place:
		return placeWords(a)
	case Restore:
		return "restore to " + a.To
	case ConfirmLeft:
		return "confirm that " + a.Name + " is left"
	case CreateMirror:
		if mirror.Suspended(a.Mirror) {
			return "create suspended in " + a.Name
		}
		return "create in " + a.Name
	case SeedMirror:
		return fmt.Sprintf("seed %d in %s", a.Status.Succeeded, a.Name)
	case CarryObjects:
		return "carry to " + a.Name
	case PatchMirror:
		return fmt.Sprintf("patch %v in %s", a.Patch.Fields, a.Name)
	case PatchRecentFields:
		return fmt.Sprintf("patch %v in %s", a.Patch.Fields, a.Name)
	case DeleteMirror:
		return deleteWords(a)
	case SuspendMirror:
		return "suspend in " + a.Name
	case UnfenceMirror:
		return "unfence in " + a.Name
	case ReadErrors:
		if a.Pod != "" {
			return fmt.Sprintf("read errors of Pod %s in %s", a.Pod, a.Name)
		}
		return "read create errors in " + a.Name
	case DisownMirror:
		return "disown in " + a.Name
	case WriteStatus:
		return "status"
	case RemoveFinalizer:
		return "remove finalizer"
	default:
		return fmt.Sprintf("%T", action)
	}
}

func placeWords(a Place) string {
	switch {
	case a.Leave == "":
		return "place"
	case a.FreshStart:
		return "move from " + a.Leave + ", from zero"
	default:
		return "move from " + a.Leave
	}
}

func deleteWords(a DeleteMirror) string {
	text := map[metav1.DeletionPropagation]string{
		metav1.DeletePropagationForeground: "delete", metav1.DeletePropagationBackground: "delete behind", metav1.DeletePropagationOrphan: "orphan",
	}[a.Propagation] + " in " + a.Name
	if a.Suspend {
		text = "suspend and " + text
	}
	if a.VerifyStale {
		text += " if stale"
	}
	if a.VerifyGone != "" {
		text += " if gone from hub"
	}
	if a.Repeats {
		text += ", made again"
	}
	return text
}

// checkDecision decides, checks what the situation is and what is done, and returns the whole plan.
func checkDecision(t *testing.T, given *Snapshot, want Situation, then []string) Plan {
	t.Helper()
	plan := Decide(given)
	if plan.Situation != want {
		t.Errorf("situation %s, want %s", plan.Situation, want)
	}
	checkActions(t, plan, then)
	return plan
}

func checkActions(t *testing.T, plan Plan, want []string) {
	t.Helper()
	var got []string
	for _, action := range plan.Actions {
		got = append(got, words(action))
	}
	for _, action := range plan.Cleanup {
		got = append(got, words(action))
	}
	if !slices.Equal(got, want) {
		t.Errorf("actions %q, want %q", got, want)
	}
}
