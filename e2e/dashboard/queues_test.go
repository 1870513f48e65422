package dashboard

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/kueue/kueuetest"
	"github.com/jobferry/jobferry/e2e/kueue/program"
)

// queues of two teams, and one that lacks its flavor.
const queues = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: on-demand}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: on-demand
      resources: [{name: cpu, nominalQuota: 8}, {name: nvidia.com/gpu, nominalQuota: 4}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: production}
spec:
  cohortName: everybody
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: on-demand
      resources: [{name: cpu, nominalQuota: 40}, {name: memory, nominalQuota: 64Gi}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: preview}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: not-there
      resources: [{name: cpu, nominalQuota: 8}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: models}
spec: {clusterQueue: research}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: reports}
spec: {clusterQueue: production}
`

// The page of Kueue's queues follows them. The Jobs wait and are admitted by Kueue alone, without a
// manager.
func TestQueues(t *testing.T) {
	s := open(t)
	s.settle("team-b")
	_, err := program.Start(s.Context(), s.Hub, program.Options{})
	s.check(err)
	d := s.serve("-n", s.NS)
	s.Visit(d.URL)
	s.Is(`document.querySelector('nav a[href$="/queues"]')`)
	s.Visit(d.base + "/queues")
	s.Until("#empty", "No queues yet")
	s.looks("")

	s.Apply(s.Hub, s.NS, queues)
	for _, name := range []string{"train-1", "train-2", "train-3"} {
		s.Submit(name, kueuetest.Queue("models"), kueuetest.Requests("4"))
	}
	s.Submit("report", kueuetest.Queue("reports"), kueuetest.Requests("4"))
	s.Until("#queue-research", "Active", "8 of 8", "0 free", "1 pending", "2 admitted")
	s.Until("#queue-production", "4 of 40", "0 pending", "1 admitted", "cohort everybody")
	s.Until("#queue-preview", "Inactive (FlavorNotFound)")
	s.looks("queues")
	s.Script(`document.querySelector("#main table a").click()`, nil)
	s.Until("#matching", "3 of 4")
	s.Back()
	s.Until("#queue-research", "1 pending")
	s.Delete("train-1", metav1.DeletePropagationBackground)
	s.Until("#queue-research", "0 pending", "2 admitted")

	s.Apply(s.Hub, s.NS, viewer)
	d = s.serveFor("viewer")
	s.Visit(d.URL)
	s.Visit(d.base + "/queues")
	s.Until("#page", "Something is missing", "clusterqueues", "localqueues")
	s.looks("")
}
