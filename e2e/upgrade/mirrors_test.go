package upgrade_test

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mirrors are the UIDs and selectors of all mirrors, by worker and Job. They tell a mirror from one
// that replaces it.
func (s *stage) mirrors() map[string]string {
	s.t.Helper()
	found := map[string]string{}
	for _, worker := range []string{builtIn, embedded} {
		list, err := s.Cluster(worker).Client().BatchV1().Jobs(s.ns).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range list.Items {
			found[worker+"/"+m.Name] = fmt.Sprintf("%s, which selects %s", m.UID, metav1.FormatLabelSelector(m.Spec.Selector))
		}
	}
	return found
}

// expectMirrors checks that the mirrors of an earlier time are still there, but for those of
// deleted Jobs.
func (s *stage) expectMirrors(then map[string]string) {
	s.t.Helper()
	now := s.mirrors()
	for name, was := range then {
		if _, job, _ := strings.Cut(name, "/"); now[name] != was && !strings.HasPrefix(job, string(deleted)) {
			s.t.Errorf("the mirror %s was %s, and is %q", name, was, now[name])
		}
	}
}
