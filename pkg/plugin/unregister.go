package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
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
		Short: "Let a worker go: the reverse of register",
		Long: templates.LongDesc(`
			Let a worker go. Its unfinished Jobs run to their end first (Wait), are moved to other workers with their
			progress (Move), or are left to the worker and go on elsewhere as well (Orphan).

			When the hub has let it go, and not before, the ServiceAccount, its token and its roles are removed from the
			worker, if you name its context. Interrupted, it can be run again.`),
		Example: templates.Examples(`
			# When its Jobs have ended
			kubectl jobferry unregister west --worker-context west-admin

			# Now: its Jobs go on elsewhere
			kubectl jobferry unregister west --worker-context west-admin --policy Move

			# A cluster that is gone for good
			kubectl jobferry unregister west --policy Orphan --yes`),
		Args:              positional(1, 1, "the worker's NAME"),
		ValidArgsFunction: c.completeWorkers(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.unregister(cmd, f, workerName(args[0]))
		},
	}
	f.worker.add(cmd)
	cmd.Flags().StringVar(&f.policy, "policy", "", "What becomes of unfinished Jobs: Wait, Move or Orphan (default: the WorkerCluster's removalPolicy)")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "Don't ask")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "How long to wait for the hub to let it go (default: for ever)")
	_ = cmd.RegisterFlagCompletionFunc("policy", cobra.FixedCompletions(removalPolicies, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
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
	worker, err := c.workerToClean(ctx, cmd, f)
	if err != nil {
		return err
	}
	if err := c.isNoOther(ctx, hub, name, worker); err != nil {
		return err
	}
	if err := c.letGo(ctx, hub, f, name, worker); err != nil {
		return err
	}
	if worker == nil {
		c.say("The worker still has the hub's ServiceAccount and roles. To remove them: kubectl jobferry unregister %s --worker-context CONTEXT", name)
		return nil
	}
	return c.cleanWorker(ctx, worker, hubUID)
}

// workerToClean is the worker, if its context is given.
func (c *cli) workerToClean(ctx context.Context, cmd *cobra.Command, f *unregisterFlags) (*workerAdmin, error) {
	if !f.worker.given() {
		return nil, nil
	}
	return f.worker.connect(ctx, cmd, c)
}

// isNoOther sees to it that the cluster that's to be cleaned isn't a worker by another name: a
// mistyped name would else cut the hub off from it.
func (c *cli) isNoOther(ctx context.Context, hub client.Client, name string, worker *workerAdmin) error {
	if worker == nil {
		return nil
	}
	var list v1alpha1.WorkerClusterList
	if err := hub.List(ctx, &list); client.IgnoreNotFound(err) != nil { // a hub without Jobferry has none
		return fmt.Errorf("hub: %w", access.Explain(err))
	}
	for _, w := range list.Items {
		if w.Name != name && w.Status.ClusterUID == worker.UID {
			return access.Advise(fmt.Errorf("the context %s leads to the worker %s, not to %s: nothing was changed", worker.Context, w.Name, name),
				"check NAME and --worker-context")
		}
	}
	return nil
}

// letGo has the hub let a worker go, and waits for that. A worker that the hub doesn't know is let
// go already.
func (c *cli) letGo(ctx context.Context, hub client.Client, f *unregisterFlags, name string, worker *workerAdmin) error {
	known := &v1alpha1.WorkerCluster{}
	err := hub.Get(ctx, types.NamespacedName{Name: name}, known)
	if apierrors.IsNotFound(err) && worker != nil {
		c.say("hub: there is no worker %s", name)
		return nil
	}
	if err != nil {
		return access.Advise(fmt.Errorf("hub: %w", err), "kubectl jobferry clusters lists the workers")
	}
	if worker != nil && known.Status.ClusterUID != "" && known.Status.ClusterUID != worker.UID {
		return fmt.Errorf("the context %s leads to another cluster than %s: nothing was changed", worker.Context, name)
	}
	policy := known.Spec.RemovalPolicy
	if f.policy != "" {
		policy = v1alpha1.RemovalPolicy(f.policy)
	}
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

// deleteRegistration deletes the Secret, or, if that is gone, the WorkerCluster.
func (c *cli) deleteRegistration(ctx context.Context, hub client.Client, known *v1alpha1.WorkerCluster) error {
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = c.systemNamespace, known.Spec.KubeconfigSecret
	err := hub.Delete(ctx, secret)
	if apierrors.IsNotFound(err) {
		c.say("hub: Secret %s is gone already", secret.Name)
		err = client.IgnoreNotFound(hub.Delete(ctx, known, client.Preconditions{UID: &known.UID}))
	}
	if err != nil {
		return fmt.Errorf("hub: delete the registration of %s: %w", known.Name, access.Explain(err))
	}
	return c.waitGone(ctx, hub, known.Name)
}

func (c *cli) waitGone(ctx context.Context, hub client.Client, name string) error {
	told := ""
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		var w v1alpha1.WorkerCluster
		err := hub.Get(ctx, types.NamespacedName{Name: name}, &w)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if text := removalProgress(&w); err == nil && text != told {
			c.say("waiting: %s", text)
			told = text
		}
		return false, err
	})
	if canceled(err) {
		return &notThereError{access.Advise(fmt.Errorf("%s isn't let go yet: %s", name, told),
			"the removal goes on; --policy Move or Orphan doesn't wait for the Jobs' end. Run it again with --worker-context to clean up the worker")}
	}
	if err != nil {
		return fmt.Errorf("hub: %w", access.Explain(err))
	}
	c.say("hub: %s is let go", name)
	return nil
}

// cleanWorker removes what register made in the worker.
func (c *cli) cleanWorker(ctx context.Context, worker *workerAdmin, hubUID types.UID) error {
	r := registration.Request{HubUID: hubUID}
	if err := c.removeTokens(ctx, worker, hubUID, ""); err != nil {
		return err
	}
	for _, object := range r.Traces() {
		if err := c.remove(ctx, worker, "worker", object); err != nil {
			return err
		}
	}
	return nil
}

// removalQuestion says what will happen.
func removalQuestion(w *v1alpha1.WorkerCluster, policy v1alpha1.RemovalPolicy) string {
	jobs := plural(int(w.Status.Jobs), "unfinished Job")
	switch {
	case w.Status.Jobs == 0:
		return fmt.Sprintf("Let %s go? It has no unfinished Jobs.", w.Name)
	case policy == v1alpha1.RemovalMove:
		return fmt.Sprintf("Let %s go? %s will be moved to other workers, with the progress made.", w.Name, jobs)
	case policy == v1alpha1.RemovalOrphan:
		return fmt.Sprintf("Let %s go? %s will go on on other workers, and may go on in %s as well: work is done twice.", w.Name, jobs, w.Name)
	default:
		return fmt.Sprintf("Let %s go? Nothing new is placed there; %s will run to the end first.", w.Name, jobs)
	}
}

// removalProgress is what the hub says of a worker that is being removed.
func removalProgress(w *v1alpha1.WorkerCluster) string {
	for _, condition := range w.Status.Conditions {
		if condition.Reason == v1alpha1.ReasonRemoving {
			return condition.Message
		}
	}
	return plural(int(w.Status.Jobs), "unfinished Job") + " left"
}

// confirm asks, unless the answer is known.
func (c *cli) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !(term.TTY{In: c.In}).IsTerminalIn() {
		return access.Advise(errors.New(question), "nobody can be asked here: add --yes if that is what you want")
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
