// Package deploy installs the charts on clusters of the rig, and says how to run their programs.
// Nodes of the rig run no images: whoever installs a chart starts its program beside the cluster,
// with the arguments and the rights that its Deployment gives.
//
//	helm install --> the cluster's objects --Command--> the program, as a process
//	                        ^--Aggregate, AwaitAdmission
package deploy

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/jobferry/jobferry/e2e/rig"
	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// Namespace is where the charts are installed.
const Namespace = v1alpha1.SystemNamespace

// helmTimeout ends a run of Helm that hangs.
const helmTimeout = 5 * time.Minute

// Helm runs Helm with its files in a folder, and returns its standard output. The error of a failed
// run has its standard error. If the rig's cache lacks Helm, it's built first.
func Helm(ctx context.Context, folder string, args ...string) (string, error) {
	program, err := binaries.Tool(ctx, binaries.Helm, binaries.Lines(os.Stderr))
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, helmTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = []string{"HOME=" + folder, "HELM_CACHE_HOME=" + folder, "HELM_CONFIG_HOME=" + folder, "HELM_DATA_HOME=" + folder}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("helm %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// On is a cluster as Helm's flags name it.
func On(cluster *rig.Cluster) []string {
	return []string{"--kubeconfig", cluster.Kubeconfig(), "--namespace", Namespace}
}

// Command is how a program runs as the Deployment of its name would: its arguments, its
// ServiceAccount, whose kubeconfig is written into a folder. Flags that are added win.
func Command(ctx context.Context, cluster *rig.Cluster, program, folder string) ([]string, error) {
	name := filepath.Base(program)
	deployment, err := cluster.Client().AppsV1().Deployments(Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	pod := deployment.Spec.Template.Spec
	kubeconfig, err := cluster.ServiceAccountKubeconfig(ctx, Namespace, pod.ServiceAccountName)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, cluster.Name()+"-"+name+".kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return nil, err
	}
	return append([]string{program, "--kubeconfig=" + file}, pod.Containers[0].Args...), nil
}

// Aggregate has the hub's API server find the manager's API on this machine, and waits until it
// does. Nothing routes a Service's own address here; one with an external name is what the API
// server connects to itself.
func Aggregate(ctx context.Context, hub *rig.Cluster, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	const service, api = "jobferry-subresources", "v1alpha1.subresources.jobferry.dev"
	for _, command := range [][]string{
		{"patch", "service", service, "-n", Namespace, "--type=merge", "-p",
			`{"spec":{"type":"ExternalName","externalName":"` + host + `","clusterIP":null,"clusterIPs":null}}`},
		{"patch", "apiservice", api, "--type=merge", "-p", `{"spec":{"service":{"port":` + port + `}}}`},
		{"wait", "--for=condition=Available", "apiservice/" + api, "--timeout=90s"},
	} {
		if _, err := hub.Kubectl(ctx, "", command...); err != nil {
			return err
		}
	}
	return nil
}

// AwaitAdmission waits until admission gives the Jobs of a namespace to the dispatcher: nothing
// tells when a policy is in force.
func AwaitAdmission(ctx context.Context, hub *rig.Cluster, namespace string) error {
	probe := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "probe"}}
	probe.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "probe", Image: "probe"}},
	}
	jobs := hub.Client().BatchV1().Jobs(namespace)
	err := wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		made, err := jobs.Create(ctx, probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && made.Spec.ManagedBy != nil && *made.Spec.ManagedBy == v1alpha1.ManagedByDispatcher, err
	})
	if err != nil {
		return fmt.Errorf("wait until admission gives Jobs of namespace %s to the dispatcher: %w", namespace, err)
	}
	return nil
}
