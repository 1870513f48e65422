package job

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/hubstate"
	"github.com/jobferry/jobferry/pkg/mirror"
)

// logf writes a line of the log: when, who, what.
func (w *world) logf(who, format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%s %-7s %s", w.clock.Now().Format("15:04:05.0"), who, fmt.Sprintf(format, args...)))
}

// Eventf implements events.EventRecorder.
func (w *world) Eventf(_, _ runtime.Object, kind, reason, _, note string, args ...any) {
	if w.killed {
		return
	}
	text := fmt.Sprintf(note, args...)
	w.events = append(w.events, reason+": "+text)
	w.logf("event", "%s %s: %s", kind, reason, text)
}

// since returns what the log says from a line on that the manager did: its writes, and the reasons
// of its events.
func (w *world) since(line int) []string {
	var lines []string
	for _, l := range w.log[line:] {
		who, what, _ := strings.Cut(l[len("15:04:05.0 "):], " ")
		switch words := strings.Fields(what); who {
		case "manager":
			lines = append(lines, strings.TrimSpace(what))
		case "event":
			lines = append(lines, "event: "+strings.TrimSuffix(words[1], ":"))
		}
	}
	return lines
}

func failure(err error) string {
	if err == nil {
		return ""
	}
	return ": " + reasonOf(err)
}

func reasonOf(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return err.Error()
}

// nameOf is the kind and name of an object that isn't a Job.
func nameOf(object client.Object) string {
	if _, ok := typedOf(object); ok {
		return ""
	}
	kind := strings.TrimPrefix(fmt.Sprintf("%T", object), "*v1.")
	return " " + kind + " " + object.GetName()
}

func createWords(object client.Object) string {
	words := "create" + nameOf(object)
	if job, ok := typedOf(object); ok && mirror.Suspended(job) {
		words += " suspended"
	}
	return words
}

func deleteWords(object client.Object, o *client.DeleteOptions) string {
	words := "delete" + nameOf(object)
	if p := ptr.Deref(o.PropagationPolicy, metav1.DeletePropagationBackground); p != metav1.DeletePropagationForeground {
		words += " " + string(p)
	}
	return words
}

// patchWords says what a merge patch changes.
func (s *apiServer) patchWords(object client.Object, p client.Patch) string {
	data, err := p.Data(object)
	var patch map[string]any
	if err != nil || json.Unmarshal(data, &patch) != nil {
		return "patch" + nameOf(object)
	}
	if meta, ok := patch["metadata"].(map[string]any); ok {
		delete(meta, "uid")
		delete(meta, "resourceVersion")
	}
	words := []string{"patch" + nameOf(object)}
	if status, ok := patch["status"].(map[string]any); ok {
		words[0] = "status"
		words = append(words, keptWords(s.jobs[client.ObjectKeyFromObject(object)], status)...)
	}
	return strings.Join(append(words, fieldWords("", patch)...), " ")
}

// keptWords takes what the manager keeps of a hub Job out of a patch, and lists what changes. The
// stories are about other things than the account.
func keptWords(was *batchv1.Job, status map[string]any) []string {
	data, err := json.Marshal(status)
	is, none := &batchv1.Job{}, &batchv1.Job{}
	if was == nil {
		was = none
	}
	if err != nil || status["conditions"] == nil || json.Unmarshal(data, &is.Status) != nil {
		return nil
	}
	var words []string
	for _, key := range []hubstate.Key{
		hubstate.Cluster, hubstate.DeadlineSpent, hubstate.FreshStart, hubstate.MovedAt, hubstate.MovedFrom, hubstate.MovedWith,
		hubstate.PlacedFor, hubstate.Shards, hubstate.ShardsState,
	} {
		switch before, value := hubstate.Get(was, key), hubstate.Get(is, key); {
		case value == before:
		case value == "":
			words = append(words, "-"+string(key))
		default:
			words = append(words, fieldWords(string(key), value)...)
		}
	}
	conditions, _ := status["conditions"].([]any)
	conditions = slices.DeleteFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		kind, _ := condition["type"].(string)
		return hubstate.IsOurs(batchv1.JobConditionType(kind)) ||
			slices.ContainsFunc(was.Status.Conditions, func(of batchv1.JobCondition) bool {
				return string(of.Type) == kind && string(of.Status) == condition["status"]
			})
	})
	if status["conditions"] = conditions; len(conditions) == 0 {
		delete(status, "conditions")
	}
	return words
}

// fieldWords lists the fields of a patch, by the last part of their names.
func fieldWords(key string, value any) []string {
	name := key[strings.LastIndex(key, "/")+1:]
	switch v := value.(type) {
	case nil:
		return []string{"-" + name}
	case map[string]any:
		var words []string
		for _, below := range slices.Sorted(maps.Keys(v)) {
			words = append(words, fieldWords(below, v[below])...)
		}
		return words
	case []any:
		return []string{name + "=[" + itemWords(v) + "]"}
	case string:
		if at, err := time.Parse(time.RFC3339, v); err == nil {
			v = at.Format(time.TimeOnly)
		}
		if strings.HasPrefix(v, "{") { // a record for the manager itself
			v = "..."
		}
		return []string{name + "=" + v}
	default:
		return []string{fmt.Sprintf("%s=%v", name, v)}
	}
}

// itemWords lists finalizers, or conditions.
func itemWords(items []any) string {
	var words []string
	for _, item := range items {
		condition, ok := item.(map[string]any)
		switch {
		case !ok:
			words = append(words, fmt.Sprint(item))
		case condition["status"] == "True":
			words = append(words, fmt.Sprint(condition["type"]))
		default:
			words = append(words, fmt.Sprintf("%v=%v", condition["type"], condition["status"]))
		}
	}
	return strings.Join(words, " ")
}
