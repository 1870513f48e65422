package plugin

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
)

// registerFlags are the settings of a registration.
type registerFlags struct {
	worker        workerFlags
	server        string
	allNamespaces bool
	namespaces    []string
	origin        string
	carry         []string
	noNamespaces  bool
	jobController string
	capacity      string
	podAccess     []string
	labels        map[string]string
	tokenDuration time.Duration
	wait          bool
	timeout       time.Duration
	dryRun        dryRun
}

func newRegister(c *cli) *cobra.Command {
	f := &registerFlags{}
	cmd := &cobra.Command{
		Use:   "register NAME --worker-context CONTEXT (--namespaces NAME,... | --all-namespaces)",
		Short: "Make a cluster a worker of the hub",
		Long: templates.LongDesc(`
			Make a cluster a worker of the hub. In the worker, create a ServiceAccount with the permissions that the
			settings need. On the hub, create a Secret with a kubeconfig for that account, and the WorkerCluster with its
			settings. Then wait until the WorkerCluster is Ready.

			You can run register again. It changes only what differs. It keeps the settings that you don't give, except
			--server. You need an admin's permissions in both clusters. The hub gets none of your permissions.`),
		Example: templates.Examples(`
			# The cluster of the context west-admin becomes the worker west, for the Jobs of two namespaces
			kubectl jobferry register west --worker-context west-admin --namespaces team-a,team-b

			# A worker for this hub alone: the hub may have Jobs in each namespace
			kubectl jobferry register west --worker-context west-admin --all-namespaces

			# The hub reaches the worker at another address. The worker gets a label for cluster selectors
			kubectl jobferry register west --worker-context west-admin -A --server https://10.1.0.5:6443 --labels region=eu

			# A worker with Jobferry's own Job controller, to which ConfigMaps are copied
			kubectl jobferry register west --worker-context west-admin -A --job-controller Embedded --carry ConfigMap

			# A token that the manager renews every few hours, and no exec
			kubectl jobferry register west --worker-context west-admin -A --token-duration 6h --pod-access logs

			# For GitOps: print what would be applied, and where
			kubectl jobferry register west --worker-context west-admin -A --dry-run=client -o yaml`),
		Args:              positional(1, 1, "the worker's NAME"),
		ValidArgsFunction: c.completeWorkers(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.register(cmd, f, workerName(args[0]))
		},
	}
	f.add(cmd)
	return cmd
}

func (f *registerFlags) add(cmd *cobra.Command) {
	f.worker.add(cmd)
	set := cmd.Flags()
	set.StringVar(&f.server, "server", "", "Address at which the hub reaches the worker's API server (default: the address of the context)")
	set.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "The hub may have Jobs in each namespace of the worker, which is worth cluster-admin of the worker")
	set.StringSliceVar(&f.namespaces, "namespaces", nil, "The hub may have Jobs only in these namespaces of the worker, and places only Jobs of these there (namespaceSelector). Missing ones are created")
	set.StringVar(&f.origin, "origin", "", "The --origin of the hub's manager, if it has one (default: the UID of the hub's namespace kube-system)")
	set.StringSliceVar(&f.carry, "carry", nil, "Kinds that the manager copies to the worker along with Jobs: "+strings.Join(kindsToCarry, ", "))
	set.BoolVar(&f.noNamespaces, "no-create-namespaces", false, "Don't let the manager create namespaces in the worker")
	set.StringVar(&f.jobController, "job-controller", "", "Controller that runs the Jobs in the worker: BuiltIn (default) or Embedded")
	set.StringVar(&f.capacity, "capacity", "", "How the manager counts free capacity: Nodes (default), Autoscaled for workers that add nodes on demand, or Unlimited to count nothing")
	set.StringSliceVar(&f.podAccess, "pod-access", podAccesses, "What users can do through the hub with the Pods of their Jobs: logs, exec, delete (where the hub shows Pods), or none")
	set.StringToStringVar(&f.labels, "labels", nil, "Labels of the WorkerCluster, for the cluster selectors of Jobs")
	set.DurationVar(&f.tokenDuration, "token-duration", defaultTokenDuration, "Lifetime of the hub's token, which the manager renews. 0: a token that doesn't expire")
	set.BoolVar(&f.wait, "wait", true, "Wait until the WorkerCluster is Ready")
	set.DurationVar(&f.timeout, "timeout", time.Minute, "How long to wait until the WorkerCluster is Ready")
	alsoCheck(cmd, f.check)
	f.dryRun.add(cmd)
}

var (
	kindsToCarry   = []string{string(v1alpha1.CarryConfigMaps), string(v1alpha1.CarrySecrets), string(v1alpha1.CarryServices), string(v1alpha1.CarryServiceAccounts)}
	jobControllers = []string{string(v1alpha1.JobControllerBuiltIn), string(v1alpha1.JobControllerEmbedded)}
	capacityModes  = []string{string(v1alpha1.CapacityNodes), string(v1alpha1.CapacityAutoscaled), string(v1alpha1.CapacityUnlimited)}
	podAccesses    = []string{accessLogs, accessExec}
)

const (
	accessLogs = "logs"
	accessExec = "exec"
	// accessDelete isn't given unless it's asked for: only where the hub shows Pods has it a use.
	accessDelete = "delete"
	accessNone   = "none"

	minTokenDuration     = 10 * time.Minute
	defaultTokenDuration = 30 * 24 * time.Hour
)

// check validates the flags.
func (f *registerFlags) check(cmd *cobra.Command) error {
	for _, choice := range []struct {
		flag   string
		given  []string
		choice []string
	}{
		{"carry", f.carry, kindsToCarry},
		{"job-controller", given(f.jobController), jobControllers},
		{"capacity", given(f.capacity), capacityModes},
		{"pod-access", f.podAccess, append(slices.Clone(podAccesses), accessDelete, accessNone)},
	} {
		for _, value := range choice.given {
			if !slices.Contains(choice.choice, value) {
				return usage(cmd, "--%s %s: it must be one of %s", choice.flag, value, strings.Join(choice.choice, ", "))
			}
		}
	}
	if f.origin != "" {
		if err := v1alpha1.Origin(f.origin).Validate(); err != nil {
			return usage(cmd, "--origin: %v", err)
		}
	}
	if f.tokenDuration != 0 && f.tokenDuration < minTokenDuration {
		return usage(cmd, "--token-duration %s: at least %s", f.tokenDuration, minTokenDuration)
	}
	return f.checkNamespaces(cmd)
}

// checkNamespaces validates the flags that say where Jobs may be.
func (f *registerFlags) checkNamespaces(cmd *cobra.Command) error {
	if f.allNamespaces && len(f.namespaces) > 0 {
		return usage(cmd, "--all-namespaces and --namespaces exclude each other")
	}
	if f.noNamespaces && len(f.namespaces) > 0 {
		return usage(cmd, "--no-create-namespaces is for --all-namespaces: with --namespaces, the manager never creates any")
	}
	for _, namespace := range f.namespaces {
		switch {
		case len(validation.IsDNS1123Label(namespace)) > 0:
			return usage(cmd, "--namespaces %q: %s", namespace, validation.IsDNS1123Label(namespace)[0])
		case namespace == v1alpha1.SystemNamespace || strings.HasPrefix(namespace, "kube-"):
			return usage(cmd, "--namespaces %s: no Jobs of a hub may be in the namespaces of the system", namespace)
		}
	}
	slices.Sort(f.namespaces)
	f.namespaces = slices.Compact(f.namespaces)
	return nil
}

func given(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// shape applies the flags that are given to the present registration.
func (f *registerFlags) shape(cmd *cobra.Command, r *registration.Request, ownSelector bool) {
	changed := cmd.Flags().Changed
	f.shapeNamespaces(changed, r, ownSelector)
	if changed("origin") {
		r.Origin = v1alpha1.Origin(f.origin)
	}
	if changed("carry") {
		r.Spec.Carry = nil
		for _, kind := range f.carry {
			r.Spec.Carry = append(r.Spec.Carry, v1alpha1.CarriedKind(kind))
		}
	}
	if changed("job-controller") {
		r.Spec.JobController = v1alpha1.JobController(f.jobController)
	}
	if changed("capacity") {
		r.Spec.Capacity = v1alpha1.CapacityMode(f.capacity)
	}
	if changed("pod-access") || r.PodAccess == nil {
		r.PodAccess = slices.DeleteFunc(slices.Clone(f.podAccess), func(a string) bool { return a == accessNone })
	}
	if r.Account == "" {
		r.TokenDuration = f.tokenDuration
	}
	if changed("labels") {
		if r.Labels == nil {
			r.Labels = map[string]string{}
		}
		maps.Copy(r.Labels, f.labels)
	}
}

// shapeNamespaces applies the flags that say in which namespaces the hub has Jobs.
func (f *registerFlags) shapeNamespaces(changed func(string) bool, r *registration.Request, ownSelector bool) {
	if changed("all-namespaces") || changed("namespaces") {
		if f.allNamespaces && len(r.Namespaces) > 0 {
			r.Spec.CreateNamespaces, r.Spec.NamespaceSelector = nil, nil
		}
		if len(f.namespaces) > 0 && !ownSelector {
			r.Spec.NamespaceSelector = registration.SelectNames(f.namespaces)
		}
		r.AllNamespaces, r.Namespaces = f.allNamespaces, f.namespaces
	}
	if changed("no-create-namespaces") {
		r.Spec.CreateNamespaces = ptr.To(!f.noNamespaces)
	}
	if len(r.Namespaces) > 0 {
		r.Spec.CreateNamespaces = ptr.To(false)
	}
}

// shape applies the flags, and warns of a selector that register doesn't change.
func (c *cli) shape(cmd *cobra.Command, f *registerFlags, r *registration.Request, found registered) {
	own := found.ownSelector(r.Name)
	f.shape(cmd, r, own)
	if own && len(f.namespaces) > 0 {
		c.say("warning: %s keeps its namespaceSelector, which isn't by name: it must select only namespaces in %s", r.Name, strings.Join(f.namespaces, ", "))
	}
}

func (c *cli) register(cmd *cobra.Command, f *registerFlags, name string) error {
	ctx, cancel := limit(cmd, f.timeout)
	defer cancel()
	endpoint, err := f.worker.endpoint(cmd, f.server)
	if err != nil {
		return err
	}
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	request, found, err := c.existing(ctx, hub, name)
	if err != nil {
		return err
	}
	if request.Account != "" && cmd.Flags().Changed("token-duration") {
		return usage(cmd, "%s already has a token: replace it by kubectl jobferry rotate %s --token-duration %s", name, name, f.tokenDuration)
	}
	c.shape(cmd, f, &request, found)
	if !request.AllNamespaces && len(request.Namespaces) == 0 {
		return usage(cmd, "in which namespaces of the worker may the hub have Jobs? Set --namespaces NAME,... or, if the worker is for this hub alone, --all-namespaces")
	}
	if f.dryRun.on() {
		return c.printManifests(cmd, f, request, endpoint)
	}
	worker, err := c.connectAs(ctx, cmd, &f.worker, found, &request)
	if err != nil {
		return err
	}
	if endpoint.Loopback() {
		c.say("warning: the worker's address %s is local to this machine; if the hub's manager runs elsewhere, set the address that it can reach by --server", endpoint.Server)
	}
	r := &registrar{cli: c, request: request, hub: hub, worker: worker}
	if err := r.apply(ctx, endpoint); err != nil {
		return err
	}
	if !f.wait {
		c.say("kubectl jobferry clusters %s shows when it is Ready.", name)
		return nil
	}
	return c.waitReady(ctx, hub, name, fmt.Sprintf("%s is registered, but not Ready after %s", name, f.timeout))
}
