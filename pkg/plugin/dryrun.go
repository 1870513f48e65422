package plugin

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

// dryRun holds --dry-run and the flags that shape its output.
type dryRun struct {
	mode, output, of string
}

const (
	dryRunNone   = "none"
	dryRunClient = "client"

	ofBoth   = "both"
	ofHub    = "hub"
	ofWorker = "worker"
)

func (d *dryRun) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&d.mode, "dry-run", dryRunNone, "client: print the manifests and change nothing")
	set.Lookup("dry-run").NoOptDefVal = dryRunClient
	set.StringVarP(&d.output, "output", "o", "yaml", "Format of --dry-run: yaml or json")
	set.StringVar(&d.of, "manifests", ofBoth, "Manifests of --dry-run: hub, worker or both")
	alsoCheck(cmd, d.check)
}

func (d *dryRun) on() bool { return d.mode == dryRunClient }

func (d *dryRun) check(cmd *cobra.Command) error {
	switch {
	case d.mode != dryRunNone && d.mode != dryRunClient:
		return usage(cmd, "--dry-run=%s: it must be none or client; only the manager can check a registration", d.mode)
	case d.output != "yaml" && d.output != "json":
		return usage(cmd, "--output %s: it must be yaml or json", d.output)
	case !slices.Contains([]string{ofBoth, ofHub, ofWorker}, d.of):
		return usage(cmd, "--manifests %s: it must be hub, worker or both", d.of)
	case d.on() && d.output == "json" && d.of == ofBoth:
		return usage(cmd, "JSON can't say which cluster a manifest is for: add --manifests hub or --manifests worker")
	default:
		return nil
	}
}

// printManifests prints what register would apply. A placeholder stands for the token, which
// doesn't exist before the worker's manifests are applied.
func (c *cli) printManifests(cmd *cobra.Command, f *registerFlags, r registration.Request, endpoint registration.Endpoint) error {
	kubeconfig, err := endpoint.Kubeconfig(r.Name, registration.TokenPlaceholder)
	if err != nil {
		return err
	}
	secret := r.Secret(nil)
	secret.Data, secret.StringData = nil, map[string]string{v1alpha1.KubeconfigKey: string(kubeconfig)}
	_, context, err := f.worker.load(cmd)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		of, title string
		objects   []client.Object
	}{
		{ofWorker, "worker: cluster of the context " + context, r.Worker()},
		{ofHub, "hub", []client.Object{r.WorkerCluster(), secret}},
	} {
		if f.dryRun.of != part.of && f.dryRun.of != ofBoth {
			continue
		}
		if err := printPart(c.Out, f.dryRun.output, part.title, part.objects); err != nil {
			return err
		}
	}
	if f.dryRun.of != ofWorker {
		c.say("%s", tokenHint(r, context))
	}
	return nil
}

func printPart(out io.Writer, format, title string, objects []client.Object) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("List")
	var manifests []*unstructured.Unstructured
	for _, object := range objects {
		manifest, err := registration.Manifest(object, access.Scheme)
		if err != nil {
			return err
		}
		manifests = append(manifests, manifest)
		list.Items = append(list.Items, *manifest)
	}
	if format == "json" {
		return (&printers.JSONPrinter{}).PrintObj(list, out)
	}
	text, err := registration.YAML(title, manifests)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

// tokenHint explains how to get the token that the placeholder stands for.
func tokenHint(r registration.Request, context string) string {
	get := fmt.Sprintf("get secret %s -o jsonpath='{.data.%s}' | base64 -d", r.AccountName(), corev1.ServiceAccountTokenKey)
	if r.Bound() {
		get = fmt.Sprintf("create token %s --duration %s", r.AccountName(), r.TokenDuration)
	}
	return strings.Join([]string{
		"Apply the worker's manifests first. In the hub's Secret, replace " + registration.TokenPlaceholder + " by the output of:",
		fmt.Sprintf("  kubectl --context %s -n %s %s", context, v1alpha1.SystemNamespace, get),
	}, "\n")
}
