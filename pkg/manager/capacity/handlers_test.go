package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	. "github.com/jobferry/jobferry/pkg/manager/capacity/capacitytest"
)

func TestHandlersFeedTheLedger(t *testing.T) {
	s := newStory(t)
	nodes, pods := s.NodeHandler(), s.PodHandler()
	node, pod := NewNode("a").Obj(), NewJob("j").Requests("cpu", "1").Pod("p")

	nodes.OnAdd(node, true)
	pods.OnAdd(pod, true)
	s.free("a=3")
	nodes.OnUpdate(node, NewNode("a").Has("cpu", "8").Obj())
	pods.OnUpdate(pod, Bind(pod, "a"))
	s.free("a=7")
	pods.OnDelete(cache.DeletedFinalStateUnknown{Key: "team/p", Obj: Bind(pod, "a")})
	s.free("a=8")
	nodes.OnDelete(node)
	s.free("")
}

func TestHandlersIgnoreWhatIsNotTheirs(t *testing.T) {
	s := newStory(t, NewNode("a"))
	for _, handler := range []cache.ResourceEventHandler{s.NodeHandler(), s.PodHandler()} {
		other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "p"}}
		handler.OnAdd(other, false)
		handler.OnUpdate(other, other)
		handler.OnDelete(other)
		handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "a"})
	}
	s.free("a=4")
}
