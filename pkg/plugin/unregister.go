package plugin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubectl/pkg/util/templates"
	"k8s.io/kubectl/pkg/util/term"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
)

type unregisterFlags struct {
	worker  workerFlags
	policy  string
	yes     bool
	timeout time.Duration
}

var removalPolicies = []string{string(v1alpha1.RemovalWait), string(v1alpha1.RemovalMove), string(v1alpha1.RemovalOrphan)}

func newUnregister(c *cli) *cobra.Command {
	f := &unregisterFlags{}
	cmd := &cobra.Command{
		Use:   "unregister NAME [--worker-context CONTEXT]",
		Short: "Remove a worker from the hub. This is the reverse of register",
		Long: templates.LongDesc(`
			Remove a worker from the hub. The policy decides what happens to its unfinished Jobs. Wait: the Jobs finish
			first. Move: the Jobs move to other workers, with their progress. Orphan: the Jobs move, too, but their mirrors
			(the Jobs in the worker) stay there, and may continue.

			If you name the worker's context, unregister also deletes the ServiceAccount, its token and its roles from the
			worker, but only after the hub has removed the worker. If unregister is interrupted, you can run it again.`),
		Example: templates.Examples(`
			# After its Jobs have finished
			kubectl jobferry unregister west --worker-context west-admin

			# At once: its Jobs continue on other workers
			kubectl jobferry unregister west --worker-context west-admin --policy Move

			# A cluster that no longer exists
			kubectl jobferry unregister west --policy Orphan --yes`),
		Args:              positional(1, 1, "the worker's NAME"),
		ValidArgsFunction: c.completeWorkers(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.unregister(cmd, f, workerName(args[0]))
		},
	}
	f.worker.add(cmd)
	cmd.Flags().StringVar(&f.policy, "policy", "", "What happens to unfinished Jobs: Wait, Move or Orphan (default: the WorkerCluster's removalPolicy)")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "Don't ask for confirmation")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "How long to wait for the hub to remove the worker (default: without limit)")
	// the flag is there
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(removalPolicies, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *cli) unregister(cmd *cobra.Command, f *unregisterFlags, name string) error {
	if f.policy != "" && !slices.Contains(removalPolicies, f.policy) {
		return usage(cmd, "--policy %s: it must be one of %s", f.policy, strings.Join(removalPolicies, ", "))
	}
	ctx, cancel := limit(cmd, f.timeout)
	defer cancel()
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	hubUID, err := access.UID(ctx, hub)
	if err != nil {
		return fmt.Errorf("hub: %w", access.Explain(err))
	}
	var worker *workerAdmin // nil: nothing is removed there
	if f.worker.given() {
		if worker, err = f.worker.connect(ctx, cmd, c); err != nil {
			return err
		}
		if err := checkName(ctx, hub, name, worker); err != nil {
			return err
		}
	}
	if err := c.removeFromHub(ctx, hub, f, name, worker); err != nil {
		return err
	}
	if worker == nil {
		c.say("The worker still has the hub's ServiceAccount and roles. To remove them: kubectl jobferry unregister %s --worker-context CONTEXT", name)
		return nil
	}
	return c.cleanWorker(ctx, worker, hubUID)
}

// checkName fails if the cluster is registered under another name. With a mistyped name, unregister
// would otherwise cut the hub off from that worker.
func checkName(ctx context.Context, hub client.Client, name string, worker *workerAdmin) error {
	workers, err := listWorkers(ctx, hub)
	if client.IgnoreNotFound(err) != nil { // a hub without Jobferry has none
		return fmt.Errorf("hub: %w", access.Explain(err))
	}
	for _, w := range workers {
		if w.Name != name && w.Status.ClusterUID == worker.UID {
			return access.Advise(fmt.Errorf("the context %s leads to the worker %s, not to %s: nothing was changed", worker.Context, w.Name, name),
				"check NAME and --worker-context")
		}
	}
	return nil
}

// removeFromHub deletes the registration, and waits until the hub has removed the worker. It does
// nothing for a worker that the hub doesn't know.
func (c *cli) removeFromHub(ctx context.Context, hub client.Client, f *unregisterFlags, name string, worker *workerAdmin) error {
	known := &v1alpha1.WorkerCluster{}
	err := hub.Get(ctx, types.NamespacedName{Name: name}, known)
	if apierrors.IsNotFound(err) && worker != nil {
		c.say("hub: there is no WorkerCluster %s", name)
		return nil
	}
	if apierrors.IsNotFound(err) {
		return noWorker(ctx, hub, name)
	}
	if err != nil {
		return fmt.Errorf("hub: %w", access.Explain(err))
	}
	if worker != nil && known.Status.ClusterUID != "" && known.Status.ClusterUID != worker.UID {
		return fmt.Errorf("the context %s leads to another cluster than %s: nothing was changed", worker.Context, name)
	}
	policy := cmp.Or(v1alpha1.RemovalPolicy(f.policy), known.Spec.RemovalPolicy)
	if err := c.confirm(f.yes, removalQuestion(known, policy)); err != nil {
		return err
	}
	if policy != known.Spec.RemovalPolicy {
		if _, _, err := setWorker(ctx, hub, name, map[string]any{"removalPolicy": policy}); err != nil {
			return err
		}
	}
	return c.deleteRegistration(ctx, hub, known)
}

// deleteRegistration deletes the Secret, or, if there is none, the WorkerCluster.
func (c *cli) deleteRegistration(ctx context.Context, hub client.Client, known *v1alpha1.WorkerCluster) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = c.systemNamespace, known.Spec.KubeconfigSecret
	err := hub.Delete(ctx, secret)
	if apierrors.IsNotFound(err) {
		c.say("hub: Secret %s was deleted already", secret.Name)
		err = client.IgnoreNotFound(hub.Delete(ctx, known, client.Preconditions{UID: &known.UID}))
	}
	if err != nil {
		return fmt.Errorf("hub: delete the registration of %s: %w", known.Name, access.Explain(err))
	}
	return c.waitGone(ctx, hub, known.Name)
}

func (c *cli) waitGone(ctx context.Context, hub client.Client, name string) error {
	state, waits, report := "", "", c.sayNew("waiting: ")
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		var w v1alpha1.WorkerCluster
		err := hub.Get(ctx, types.NamespacedName{Name: name}, &w)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err == nil {
			state, waits = removalProgress(&w), ""
			if policy := w.Spec.RemovalPolicy; policy == "" || policy == v1alpha1.RemovalWait {
				waits = ". --policy Move or Orphan doesn't wait for their ends"
			}
			report(state)
		}
		return false, err
	})
	if canceled(err) {
		return &pendingError{access.Advise(fmt.Errorf("%s isn't removed yet: %s", name, state),
			"the removal continues. kubectl jobferry jobs -A --worker "+name+" shows which Jobs are left, and kubectl jobferry why JOB what one waits for"+
				waits+". Run it again with --worker-context to clean up the worker")}
	}
	if err != nil {
		return fmt.Errorf("hub: %w", access.Explain(err))
	}
	c.say("hub: %s is removed", name)
	return nil
}

// cleanWorker removes what register created in the worker.
func (c *cli) cleanWorker(ctx context.Context, worker *workerAdmin, hubUID types.UID) error {
	if err := c.removeLeases(ctx, worker, hubUID); err != nil {
		return err
	}
	if err := c.removeAccounts(ctx, worker, hubUID, ""); err != nil {
		return err
	}
	if err := c.removeRoles(ctx, worker, hubUID, func(string) bool { return false }); err != nil {
		return err
	}
	for _, object := range (registration.Request{HubUID: hubUID}).Traces() {
		if err := c.remove(ctx, worker, object); err != nil {
			return err
		}
	}
	return nil
}

// removeLeases deletes the Leases of a hub. The fence's stays for orphaned Jobs, because it says
// that the hub has released them: without it, they would be fenced.
func (c *cli) removeLeases(ctx context.Context, worker client.Client, hubUID types.UID) error {
	var leases coordinationv1.LeaseList
	err := worker.List(ctx, &leases, client.InNamespace(v1alpha1.SystemNamespace), client.MatchingLabels(registration.WorkerLabels(hubUID)))
	if err != nil {
		return fmt.Errorf("worker: list Leases: %w", access.Explain(err))
	}
	for i := range leases.Items {
		origin := leases.Items[i].Labels[v1alpha1.LabelOrigin]
		if !hasPlainName(&leases.Items[i]) || origin != "" && !objectnames.IsPlain(origin) {
			return fmt.Errorf("worker: list Leases: %w", errName)
		}
		var jobs batchv1.JobList
		err := worker.List(ctx, &jobs, client.MatchingLabels{v1alpha1.LabelOrigin: origin}, client.Limit(1))
		isLarge := access.IsTooLarge(err) // a Job may be
		if err != nil && !isLarge {
			return fmt.Errorf("worker: list Jobs: %w", access.Explain(err))
		}
		if (isLarge || len(jobs.Items) > 0) && leases.Items[i].Name != v1alpha1.Origin(origin).WriterLease() {
			c.say("worker: Lease %s stays for the Jobs that are left; to see them: kubectl get jobs -A -l %s=%s", leases.Items[i].Name, v1alpha1.LabelOrigin, origin)
			continue
		}
		if err := c.remove(ctx, worker, &leases.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// removalQuestion explains what will happen.
func removalQuestion(w *v1alpha1.WorkerCluster, policy v1alpha1.RemovalPolicy) string {
	jobs := plural(int(w.Status.Jobs), "unfinished Job")
	switch {
	case w.Status.Jobs == 0:
		return fmt.Sprintf("Remove %s? It has no unfinished Jobs.", w.Name)
	case policy == v1alpha1.RemovalMove:
		return fmt.Sprintf("Remove %s? %s will be moved to other workers, with their progress.", w.Name, jobs)
	case policy == v1alpha1.RemovalOrphan:
		return fmt.Sprintf("Remove %s? %s will continue on other workers, and may continue in %s as well: work may be done twice.", w.Name, jobs, w.Name)
	default:
		return fmt.Sprintf("Remove %s? It gets no new Jobs; %s will finish first.", w.Name, jobs)
	}
}

// removalProgress describes the removal of a worker.
func removalProgress(w *v1alpha1.WorkerCluster) string {
	for _, condition := range w.Status.Conditions {
		if condition.Reason == v1alpha1.ReasonRemoving {
			return condition.Message
		}
	}
	return plural(int(w.Status.Jobs), "unfinished Job") + " left"
}

// confirm asks the user, unless --yes answers.
func (c *cli) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !(term.TTY{In: c.In}).IsTerminalIn() {
		return access.Advise(errors.New(question), "standard input is no terminal: add --yes to confirm")
	}
	fprintf(c.ErrOut, "%s [y/N] ", question)
	answer, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(answer))) {
		return errors.New("nothing was changed")
	}
	return nil
}
