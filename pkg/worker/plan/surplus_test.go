package plan

import (
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

// A tenant scales a Job down whose Pods have many sidecars, or lets the Pods fail: the sidecars of
// each Pod are read once.
func TestPodsOfVeryManySidecars(t *testing.T) {
	const sidecars = 300
	pods := make([]*pod, 100)
	for i := range pods {
		pods[i] = &pod{Pod: aPod(strconv.Itoa(i))}
		for c := range sidecars {
			name := strconv.Itoa(c)
			pods[i].Spec.InitContainers = append(pods[i].Spec.InitContainers,
				corev1.Container{Name: name, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)})
			pods[i].Status.InitContainerStatuses = append(pods[i].Status.InitContainerStatuses, corev1.ContainerStatus{Name: name, RestartCount: int32(i * 37 % 100)})
		}
	}
	once := costtest.Of(func() {
		for _, p := range pods {
			containersEnd(p.Pod)
		}
	})
	for name, read := range map[string]func(){
		"sort":                func() { byExpendability(pods) },
		"find the latest end": func() { latestEnd(pods) },
	} {
		if n := costtest.Of(read); n > once*3/2 {
			t.Errorf("to %s takes %d KiB, to read all sidecars once %d KiB", name, n>>10, once>>10)
		}
	}
}
