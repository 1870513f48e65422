package bench

import (
	"context"
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/e2e/bench/audit"
	"github.com/jobferry/jobferry/e2e/bench/report"
	"github.com/jobferry/jobferry/e2e/kueue/program"
	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/process"
)

const (
	// peerUser is Kueue's manager on the hub, in all clusters, and workersPeerUser the one that
	// MultiKueue needs in each worker.
	peerUser, workersPeerUser = "kueue-hub", "kueue-worker"
	// peerRate is the rate limit of MultiKueue's clients of workers, in requests per second. The
	// release's is 5, which sets all times.
	peerRate = 1000
	// peerSingles is how many Jobs are submitted one at a time, at most.
	peerSingles = 20
	peerQueue   = "bench"
)

// peer measures MultiKueue with the same clusters, the same Jobs and the same audit logs. It comes
// last: Kueue's webhooks would cost all other Jobs.
func (r *run) peer(ctx context.Context, dir string) error {
	r.options.Progress("MultiKueue: building it")
	kueue, version, err := program.WithRateInWorkers(ctx, dir, peerRate)
	if err != nil {
		return err
	}
	p := &report.Peer{Version: version, Rate: peerRate}
	if p.Floor, err = r.floor(ctx); err != nil {
		return err
	}
	r.options.Progress("MultiKueue: %d Jobs at once", r.options.Jobs)
	manager, err := r.installPeer(ctx, kueue)
	if err != nil {
		return err
	}
	if p.Singles, err = r.oneByOne(ctx, peerSinglesNamespace, names(min(r.options.Singles, peerSingles)), queued); err != nil {
		return err
	}
	if err := r.peerFlood(ctx, p); err != nil {
		return err
	}
	usage, err := process.UsageOf(manager)
	if err != nil {
		return err
	}
	p.PeakMemory = usage.PeakRSS
	if p.Requests, err = r.peerRequests(peerUser); err != nil {
		return err
	}
	p.OfWorkers, err = r.peerRequests(workersPeerUser)
	r.result.Peer = p
	return err
}

// peerFlood submits all Jobs at once, and removes them.
func (r *run) peerFlood(ctx context.Context, p *report.Peer) error {
	v, err := watchAll(ctx, r.fleet, peerNamespace)
	if err != nil {
		return err
	}
	defer v.stop()
	flood, sent, err := r.burst(ctx, "peer", peerNamespace, r.fleet.hub, v.hub, queued, r.options.sized)
	if err != nil {
		return err
	}
	p.Flood, p.AtOnce = *flood, v.latencies(sent)
	if err := pause(ctx, settle); err != nil {
		return err
	}
	if err := r.fleet.hub.remove(ctx, r.options.Submitters, peerNamespace, names(r.options.Jobs)); err != nil {
		return err
	}
	return v.awaitGone(ctx)
}

// peerRequests are those of a user for the Jobs at once and what belongs to them.
func (r *run) peerRequests(user string) ([]audit.Count, error) {
	hub, err := requestsOf(user, r.fleet.hub)
	if err != nil {
		return nil, err
	}
	workers, err := requestsOf(user, r.fleet.workers...)
	if err != nil {
		return nil, err
	}
	in := func(all []rig.Request) []rig.Request {
		return audit.Select(all, audit.In(peerNamespace), audit.Not(audit.IsUpkeep))
	}
	return append(audit.Tally("hub", in(hub)), audit.Tally("workers", in(workers))...), nil
}

// installPeer brings Kueue to all clusters, with one queue that has quota for all Jobs, and returns
// the hub's process.
func (r *run) installPeer(ctx context.Context, kueue string) (pid int, err error) {
	for _, w := range r.fleet.workers {
		if _, err := program.Start(ctx, w.Cluster, program.Options{Program: kueue, User: workersPeerUser}); err != nil {
			return 0, err
		}
		if _, err := w.Kubectl(ctx, peerQueues(""), "apply", "-f", "-"); err != nil {
			return 0, err
		}
	}
	hub := r.fleet.hub
	manager, err := program.Start(ctx, hub.Cluster, program.Options{Program: kueue, User: peerUser})
	if err != nil {
		return 0, err
	}
	manifests := peerQueues("  admissionChecksStrategy: {admissionChecks: [{name: bench}]}\n") + peerCheck
	var clusters []string
	for _, w := range r.fleet.workers {
		kubeconfig, err := w.UserKubeconfigBytes(peerUser, managerGroup)
		if err != nil {
			return 0, err
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: w.Name()}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
		if _, err := hub.client.CoreV1().Secrets(program.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return 0, err
		}
		manifests += fmt.Sprintf(peerCluster, w.Name())
		clusters = append(clusters, w.Name())
	}
	manifests += fmt.Sprintf(peerConfig, strings.Join(clusters, ", "))
	if _, err := hub.Kubectl(ctx, manifests, "apply", "-f", "-"); err != nil {
		return 0, err
	}
	for _, s := range r.fleet.all() {
		if _, err := s.Kubectl(ctx, "", "wait", "--for=condition=Active", "clusterqueue/"+peerQueue, "--timeout=60s"); err != nil {
			return 0, err
		}
	}
	return manager.PID(), nil
}

// queued gives a Job to MultiKueue.
func queued(j *batchv1.Job) {
	j.Labels["kueue.x-k8s.io/queue-name"] = peerQueue
	j.Spec.ManagedBy = ptr.To("kueue.x-k8s.io/multikueue")
}

// peerQueues are a ClusterQueue with quota for all Jobs, and more fields, and its LocalQueues.
func peerQueues(more string) string {
	manifests := fmt.Sprintf(`
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
%[2]s  resourceGroups:
  - coveredResources: [cpu, memory]
    flavors:
    - name: default
      resources: [{name: cpu, nominalQuota: 30k}, {name: memory, nominalQuota: 30Ti}]
`, peerQueue, more)
	for _, namespace := range []string{peerSinglesNamespace, peerNamespace} {
		manifests += fmt.Sprintf(`---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[1]s, namespace: %[2]s}
spec: {clusterQueue: %[1]s}
`, peerQueue, namespace)
	}
	return manifests
}

const (
	peerCheck = `---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: bench}
spec:
  controllerName: kueue.x-k8s.io/multikueue
  parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: bench}
`
	peerConfig = `---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueConfig
metadata: {name: bench}
spec: {clusters: [%s]}
`
	peerCluster = `---
apiVersion: kueue.x-k8s.io/v1beta2
kind: MultiKueueCluster
metadata: {name: %[1]s}
spec: {clusterSource: {kubeConfig: {locationType: Secret, location: %[1]s}}}
`
)
