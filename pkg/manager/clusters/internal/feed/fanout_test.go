package feed

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/manager/usage/podtimes"
)

// diary is a keeper that writes down what it's told.
type diary struct{ lines *[]string }

func (d diary) note(format string, names ...any) {
	*d.lines = append(*d.lines, fmt.Sprintf(format, names...))
}

func (d diary) Set(pod *corev1.Pod) { d.note("set %s", pod.Name) }
func (d diary) Remove(name string)  { d.note("remove %s", name) }
func (d diary) Keys() []string      { return []string{"old", "a"} }

func TestFanOutPassesOnWhatIsOfItsType(t *testing.T) {
	pod := func(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	var lines []string
	f := fanOut[string, *corev1.Pod]{
		(*corev1.Pod).GetName, []store[string, *corev1.Pod]{diary{&lines}}, func() { lines = append(lines, "changed") },
	}
	for _, delta := range []cache.Delta{
		{Type: cache.ReplacedAll, Object: cache.ReplacedAllInfo{Objects: []any{pod("a"), &corev1.Node{}, pod("b")}}},
		{Type: cache.Added, Object: pod("c")},
		{Type: cache.Updated, Object: pod("a")},
		{Type: cache.Deleted, Object: pod("b")},
		{Type: cache.Updated, Object: &corev1.Node{}},
		{Type: cache.Bookmark, Object: cache.BookmarkInfo{}},
	} {
		f.process(cache.Deltas{delta}, func(any) {})
	}
	want := []string{"remove old", "set a", "set b", "changed", "set c", "changed", "set a", "changed", "remove b", "changed", "changed", "changed"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// reader is a keeper that reads what is deleted.
type reader struct{ diary }

func (r reader) Delete(pod *corev1.Pod) { r.note("read %s", pod.Name) }

func TestFanOutTellsWhatIsDeletedFromWhatIsMissing(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	var lines []string
	f := fanOut[string, *corev1.Pod]{(*corev1.Pod).GetName, []store[string, *corev1.Pod]{reader{diary{&lines}}}, func() {}}
	for _, delta := range []cache.Delta{
		{Type: cache.Deleted, Object: pod},
		{Type: cache.ReplacedAll, Object: cache.ReplacedAllInfo{Objects: []any{pod}}},
	} {
		f.pass(&delta)
	}
	if diff := cmp.Diff([]string{"read a", "remove old", "set a"}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The times of Pods differ by that: see package podtimes.
var _ deleter[*corev1.Pod] = (*podtimes.Store)(nil)
