package plugin

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

// workerFlags tell how the admin reaches a worker.
type workerFlags struct {
	context, kubeconfig string
}

func (w *workerFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.context, "worker-context", "", "Context of the worker, with an admin's permissions there")
	cmd.Flags().StringVar(&w.kubeconfig, "worker-kubeconfig", "",
		"Kubeconfig file with the worker's context (default: kubectl's). With this flag, --worker-context defaults to the file's current context")
	_ = cmd.RegisterFlagCompletionFunc("worker-context", w.completeContexts) // the flag is there
}

func (w *workerFlags) given() bool { return w.context != "" || w.kubeconfig != "" }

func (w *workerFlags) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = w.kubeconfig
	return rules
}

func (w *workerFlags) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	config, err := w.rules().Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
}

// load reads the kubeconfig, and returns the name of the worker's context.
func (w *workerFlags) load(cmd *cobra.Command) (*clientcmdapi.Config, string, error) {
	if !w.given() {
		return nil, "", usage(cmd, "the worker's context is missing: set --worker-context")
	}
	config, err := w.rules().Load()
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig of the worker: %w", err)
	}
	name := cmp.Or(w.context, config.CurrentContext)
	if _, ok := config.Contexts[name]; !ok {
		return nil, "", usage(cmd, "there is no context %q of the worker in the kubeconfig; kubectl config get-contexts lists them", name)
	}
	return config, name, nil
}

// endpoint returns how the hub reaches the worker.
func (w *workerFlags) endpoint(cmd *cobra.Command, server string) (registration.Endpoint, error) {
	config, name, err := w.load(cmd)
	if err != nil {
		return registration.Endpoint{}, err
	}
	config.CurrentContext = name
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return registration.Endpoint{}, fmt.Errorf("context %q of the worker: %w", name, err)
	}
	config.AuthInfos = nil // the hub must not get the admin's credentials
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return registration.Endpoint{}, fmt.Errorf("context %q of the worker: %w", name, err)
	}
	return registration.EndpointOf(config, name, server)
}

// workerAdmin is a client of a worker with the admin's credentials.
type workerAdmin struct {
	client.Client
	// Context is its name in the admin's kubeconfig.
	Context string
	// UID is its identity.
	UID types.UID
}

// connect makes a client of the worker, and reads its identity.
func (w *workerFlags) connect(ctx context.Context, cmd *cobra.Command, c *cli) (*workerAdmin, error) {
	config, name, err := w.load(cmd)
	if err != nil {
		return nil, err
	}
	overrides := &clientcmd.ConfigOverrides{}
	restConfig, err := clientcmd.NewNonInteractiveClientConfig(*config, name, overrides, w.rules()).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("context %q of the worker: %w", name, err)
	}
	worker, err := access.NewWorkerClient(c.tuned(restConfig))
	if err != nil {
		return nil, fmt.Errorf("context %q of the worker: %w", name, err)
	}
	uid, err := access.UID(ctx, worker)
	if err != nil {
		return nil, fmt.Errorf("worker (context %s): %w", name, access.Explain(err))
	}
	return &workerAdmin{Client: worker, Context: name, UID: uid}, nil
}
