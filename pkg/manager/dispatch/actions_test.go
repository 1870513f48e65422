package dispatch

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// words says an action in a few words, for tables.
func words(action Action) string {
	switch a := action.(type) {
	case Place:
		return placeWords(a)
	case CreateMirror:
		return createWords(a)
	case SeedMirror:
		return fmt.Sprintf("seed %d in %s", a.Status.Succeeded, a.Worker)
	case CarryObjects:
		return "carry to " + a.Worker
	case PatchMirror:
		return fmt.Sprintf("patch %v in %s", a.Patch.Fields, a.Worker)
	case DeleteMirror:
		return deleteWords(a)
	case SuspendMirror:
		return "suspend in " + a.Worker
	case ConfirmMirror:
		return "confirm in " + a.Worker
	case AskWhy:
		return "ask " + a.Worker
	case DisownMirror:
		return "disown in " + a.Worker
	case WriteStatus:
		return "status"
	case LetGo:
		return "let go"
	default:
		return fmt.Sprintf("%T", action)
	}
}

func createWords(a CreateMirror) string {
	text := "create"
	if mirror.Suspended(a.Mirror) {
		text += " suspended"
	}
	text += " in " + a.Worker
	if a.VerifyWanted {
		text += " if still wanted"
	}
	return text
}

func placeWords(a Place) string {
	switch {
	case a.At != "":
		return "place at " + a.At
	case a.Leave != "":
		text := "move from " + a.Leave
		if a.FreshStart {
			text += ", from zero"
		}
		return text
	default:
		return "place"
	}
}

func deleteWords(a DeleteMirror) string {
	text := "delete in " + a.Worker
	if a.Propagation == metav1.DeletePropagationOrphan {
		text = "orphan in " + a.Worker
	}
	if a.VerifyElsewhere {
		text += " if placed elsewhere"
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
	if !slices.Equal(got, want) {
		t.Errorf("actions %q, want %q", got, want)
	}
}
