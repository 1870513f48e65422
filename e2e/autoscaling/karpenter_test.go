package autoscaling_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/jobferry/jobferry/e2e/dispatch/ferrytest"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

const claimsPath = "/apis/karpenter.sh/v1/nodeclaims"

// asks sends a request about a NodeClaim, which has no protobuf.
func asks(ctx context.Context, r *rest.Request, body string) error {
	return r.SetHeader("Accept", runtime.ContentTypeJSON).Body([]byte(body)).Do(ctx).Error()
}

// claim makes a NodeClaim of the pool, as Karpenter does, for some instance types or any.
func (a *autoscaler) claim(ctx context.Context, kinds ...string) (path string, err error) {
	a.mu.Lock()
	a.claimed++
	name := fmt.Sprintf("%s-claim-%d", a.pool, a.claimed)
	a.mu.Unlock()
	requirement := ""
	if len(kinds) > 0 {
		requirement = `{"key":"node.kubernetes.io/instance-type","operator":"In","values":["` + strings.Join(kinds, `","`) + `"]}`
	}
	post := a.cluster.Client().CoreV1().RESTClient().Post().AbsPath(claimsPath).SetHeader("Content-Type", runtime.ContentTypeJSON)
	return claimsPath + "/" + name, asks(ctx, post, fmt.Sprintf(`{
		"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","metadata":{"name":%q,"labels":{"karpenter.sh/nodepool":%q},
		"finalizers":["karpenter.sh/termination"]},"spec":{"requirements":[%s]},"status":{"conditions":[{"type":"Launched","status":"Unknown"}]}}`,
		name, a.pool, requirement))
}

// claimChanges changes a NodeClaim.
func (a *autoscaler) claimChanges(ctx context.Context, path, patch string) error {
	return asks(ctx, a.cluster.Client().CoreV1().RESTClient().Patch(types.MergePatchType).AbsPath(path), patch)
}

// claimFails makes a NodeClaim for which there is no machine: Karpenter deletes it.
func (a *autoscaler) claimFails(ctx context.Context, kinds ...string) error {
	path, err := a.claim(ctx, kinds...)
	if err != nil {
		return err
	}
	return errors.Join(
		asks(ctx, a.cluster.Client().CoreV1().RESTClient().Delete().AbsPath(path), "{}"),
		a.claimChanges(ctx, path, `{"metadata":{"finalizers":null}}`),
	)
}

// claimIsMade makes a NodeClaim for which there is a machine.
func (a *autoscaler) claimIsMade(ctx context.Context) error {
	path, err := a.claim(ctx)
	if err != nil {
		return err
	}
	return a.claimChanges(ctx, path, `{"metadata":{"labels":{"node.kubernetes.io/instance-type":"large"},"finalizers":null},
		"status":{"providerID":"x","conditions":[{"type":"Launched","status":"True"}]}}`)
}

// While Karpenter gets no machines for a NodePool, Jobs go elsewhere, and nobody waits for
// podStartTimeout. What isn't about machines of this NodePool, or is too large, changes nothing.
func TestNodePoolWithoutMachinesIsPassedOver(t *testing.T) {
	s := open(t, 4)
	s.RunManager(slow)
	s.AddKarpenter("w1")
	s.nodePool(`{"cpu":"16"}`, "True")
	s.registers(s.templateOf(s.pool, 4))
	for _, worker := range []string{"w1", "w2"} {
		s.SetWorker(worker, `{"podStartTimeout":"10m"}`)
	}
	s.w1.isKarpenter(true)
	s.w1.isOut(true)
	s.submit("first", rigtest.Parallel(2))
	s.EventUntil("first", "Placed", "Placed on worker w1, after scale-up")
	s.submit("late", inW1)
	s.HubJobUntil("late", ferrytest.IsAt("w1"))
	began := time.Now()
	if at := s.endedAt("first"); at != "w2" {
		t.Errorf("first ran on %s", at)
	}
	t.Logf("first ended on w2 after %s", time.Since(began))
	s.submit("second")
	s.EventUntil("second", "Placed", "1/2 clusters available: 1 the autoscaler adds no nodes for now")

	s.w1.isOut(false)
	if err := s.w1.claimIsMade(s.Context()); err != nil {
		t.Fatal(err)
	}
	s.HubJobUntil("late", rigtest.Complete)
	s.HubJobUntil("second", rigtest.Complete)
	s.w2.untilEmpty(s.Context(), t)
	if err := s.w1.claimFails(s.Context(), strings.Repeat("x", 1<<20)); err != nil {
		t.Fatal(err)
	}
	s.submit("third")
	if at := s.endedAt("third"); at != "w1" {
		t.Errorf("third ran on %s", at)
	}
	s.report(t, 4)
}
