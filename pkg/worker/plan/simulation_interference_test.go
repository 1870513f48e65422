package plan

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// interference is what others do to the Pods of a Job, beside their deletion.
func (s *simulation) interference() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"stop matching": func(t *rapid.T) {
			p := s.anyPod(t, func(p *corev1.Pod) bool { return runs(p) && matches(p) })
			s.deleted.Insert(p.UID) // it isn't counted, unless it matches again
			p.Labels = map[string]string{"job": "elsewhere"}
			s.logf("%s stops matching", p.Name)
			s.storePod(p)
		},
		// A Pod that ended, and was counted, before it was released would count twice, as with the
		// built-in: nothing tells it from one that never was the Job's.
		"match again": func(t *rapid.T) {
			p := s.anyPod(t, func(p *corev1.Pod) bool { return runs(p) && !matches(p) })
			p.Labels = s.job.Spec.Template.Labels
			s.logf("%s matches again", p.Name)
			s.storePod(p)
		},
		"a Pod by hand": func(t *rapid.T) {
			s.addByHand(rapid.Bool().Draw(t, "owned"), rapid.IntRange(-1, 3).Draw(t, "index"))
		},
		"restart containers": func(t *rapid.T) {
			p := s.anyPod(t, alive)
			if rapid.Bool().Draw(t, "init") {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", RestartCount: 1}}
			} else {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: 1}}
			}
			s.logf("%s restarts a container", p.Name)
			s.storePod(p)
		},
		"refuse or allow": func(t *rapid.T) {
			s.refusesDeletions, s.refusesPatches = rapid.Bool().Draw(t, "deletions"), rapid.Bool().Draw(t, "patches")
			s.logf("refuses deletions=%v, patches=%v", s.refusesDeletions, s.refusesPatches)
		},
	}
}

func runs(p *corev1.Pod) bool { return alive(p) && p.DeletionTimestamp == nil }

func matches(p *corev1.Pod) bool { return p.Labels["job"] == "job-uid" }

// byHand begins the names of Pods that the controller hasn't made.
const byHand = "by-hand-"

// addByHand adds a Pod that matches the selector, without the finalizer.
func (s *simulation) addByHand(owned bool, at int) {
	uid := types.UID(byHand + s.nextVersion())
	p := aPod(string(uid), untracked, index(at))
	p.CreationTimestamp = metav1.NewTime(s.now)
	if !owned {
		p.OwnerReferences = nil
	}
	s.pods[uid] = p
	s.deleted.Insert(uid) // if the Job ends before it sees the Pod, it isn't counted
	s.logf("somebody makes %s of index %d, owned: %v", uid, at, owned)
	s.storePod(p)
}
