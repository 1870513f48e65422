package watch

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/jobferry/jobferry/e2e/chaos/checker"
)

func pod(name, uid, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
}

// What happened while nobody watched is made up for at the next list.
func TestStore(t *testing.T) {
	var notified []string
	s := newStore("w1", func(e checker.Event) {
		word := e.Where + " " + string(e.Pod.UID) + "@" + e.Pod.ResourceVersion
		if e.Gone {
			word += " gone"
		}
		notified = append(notified, word)
	})
	expect := func(err error, want ...string) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		slices.Sort(notified)
		if !slices.Equal(notified, want) {
			t.Errorf("notified %q, want %q", notified, want)
		}
		notified = nil
	}
	expect(s.Replace([]any{pod("a", "a1", "1"), pod("b", "b1", "2"), pod("c", "c1", "3")}, ""), "w1 a1@1", "w1 b1@2", "w1 c1@3")
	expect(s.Add(pod("d", "d1", "4")), "w1 d1@4")
	expect(s.Update(pod("a", "a1", "5")), "w1 a1@5")
	expect(s.Update(pod("a", "a1", "5")))
	expect(s.Delete(pod("d", "d1", "6")), "w1 d1@6 gone")
	expect(s.Replace([]any{pod("a", "a1", "5"), pod("b", "b2", "7")}, ""), "w1 b1@2 gone", "w1 b2@7", "w1 c1@3 gone")
}
