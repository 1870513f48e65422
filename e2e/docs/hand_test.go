package docs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/process"
)

const systemNamespace = "jobferry-system"

// hand starts the program of a Deployment of ours beside its simulated Pods, for as long as the
// Deployment is there.
type hand struct {
	s       *stage
	cluster *rig.Cluster
	program string
	listen  []string // flags in place of the Deployment's addresses

	args    []string
	process *process.Process
}

// attend has the hand see to a program in a cluster until the test ends.
func (s *stage) attend(cluster, program string, listen ...string) *hand {
	s.t.Helper()
	h := &hand{s: s, cluster: s.Cluster(cluster), program: program, listen: listen}
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(h.cluster.Client(), 0, informers.WithNamespace(systemNamespace))
	_, err := factory.Apps().V1().Deployments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { h.follow(ctx, o) },
		UpdateFunc: func(_, o any) { h.follow(ctx, o) },
		DeleteFunc: func(o any) { h.leave(o) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	factory.Start(ctx.Done())
	s.t.Cleanup(func() {
		cancel()
		factory.Shutdown() // no handler runs any more
		h.stop()
		if s.t.Failed() {
			h.tell()
		}
	})
	return h
}

// follow starts the program, and starts it again when its arguments change.
func (h *hand) follow(ctx context.Context, o any) {
	d, ok := o.(*appsv1.Deployment)
	if !ok || d.Name != h.program || slices.Equal(d.Spec.Template.Spec.Containers[0].Args, h.args) {
		return
	}
	h.stop()
	h.args = d.Spec.Template.Spec.Containers[0].Args
	if err := h.start(ctx, d.Spec.Template.Spec.ServiceAccountName); err != nil && ctx.Err() == nil {
		h.s.t.Errorf("start %s: %v", h.program, err)
	}
}

func (h *hand) start(ctx context.Context, account string) error {
	kubeconfig, err := h.cluster.ServiceAccountKubeconfig(ctx, systemNamespace, account)
	if err != nil {
		return err
	}
	file := h.file("kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return err
	}
	args := append(append(slices.Clone(h.args), "--kubeconfig="+file), h.listen...)
	h.process, err = process.Start(exec.Command(filepath.Join(h.s.bin, h.program), args...), h.file("log"))
	return err
}

func (h *hand) leave(o any) {
	if d, ok := o.(*appsv1.Deployment); ok && d.Name == h.program {
		h.stop()
		h.args = nil
	}
}

func (h *hand) stop() {
	if h.process != nil {
		h.process.Kill()
		h.process = nil
	}
}

func (h *hand) file(what string) string {
	return filepath.Join(h.s.dir, h.cluster.Name()+"-"+h.program+"."+what)
}

func (h *hand) tell() {
	log, err := os.ReadFile(h.file("log"))
	lines := strings.Split(string(log), "\n")
	h.s.t.Logf("log of %s (%v):\n%s", h.program, err, strings.Join(lines[max(0, len(lines)-60):], "\n"))
}

// lead has the hub's API server find the aggregated API on this machine, whenever Helm has
// installed its Service. No kube-proxy routes a Service's own address here; one with an external
// name is what the API server connects to itself.
func (s *stage) lead(port string) {
	s.t.Helper()
	client := s.Cluster(hub).Client()
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(systemNamespace))
	redirect := func(o any) {
		service, ok := o.(*corev1.Service)
		if !ok || service.Name != "jobferry-subresources" || service.Spec.Type == corev1.ServiceTypeExternalName {
			return
		}
		external := []byte(`{"spec":{"type":"ExternalName","externalName":"127.0.0.1","clusterIP":null,"clusterIPs":null}}`)
		_, err := client.CoreV1().Services(systemNamespace).Patch(ctx, service.Name, types.MergePatchType, external, metav1.PatchOptions{})
		if err == nil {
			_, err = s.bash(ctx, fmt.Sprintf(`for i in $(seq 100); do kubectl get apiservice v1alpha1.subresources.jobferry.dev >/dev/null 2>&1 && break; sleep 0.1; done
				kubectl patch apiservice v1alpha1.subresources.jobferry.dev --type=merge -p '{"spec":{"service":{"port":%s}}}'`, port), "")
		}
		if err != nil && ctx.Err() == nil {
			s.t.Errorf("lead the hub to the aggregated API: %v", err)
		}
	}
	_, err := factory.Core().V1().Services().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: redirect, UpdateFunc: func(_, o any) { redirect(o) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	factory.Start(ctx.Done())
	s.t.Cleanup(func() { cancel(); factory.Shutdown() })
}
