package plugin

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubectl/pkg/util/templates"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/registration"
	"github.com/jobferry/jobferry/pkg/util/boundtoken"
	"github.com/jobferry/jobferry/pkg/util/wake"
)

type rotateFlags struct {
	worker   workerFlags
	duration time.Duration
	timeout  time.Duration
}

func newRotate(c *cli) *cobra.Command {
	f := &rotateFlags{}
	cmd := &cobra.Command{
		Use:   "rotate NAME --worker-context CONTEXT",
		Short: "Give the hub a new token for a worker, and revoke the old ones",
		Long: templates.LongDesc(`
			Create a new ServiceAccount for the hub in the worker, and put a token of it into the hub's Secret. When the hub
			uses that token, delete the old ServiceAccount, which revokes all its tokens. Jobs continue meanwhile. If rotate
			is interrupted, both ServiceAccounts are valid, and you can run it again.

			The manager renews tokens that expire by itself. Rotate when a token may have been stolen.`),
		Example: templates.Examples(`
			kubectl jobferry rotate west --worker-context west-admin

			# Change to a token that expires
			kubectl jobferry rotate west --worker-context west-admin --token-duration 720h`),
		Args:              positional(1, 1, "the worker's NAME"),
		ValidArgsFunction: c.completeWorkers(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.rotate(cmd, f, workerName(args[0]))
		},
	}
	f.worker.add(cmd)
	cmd.Flags().DurationVar(&f.duration, "token-duration", 0, "Use a token that expires after this duration; the manager renews it. 0: one that doesn't expire (default: as the old token)")
	cmd.Flags().DurationVar(&f.timeout, "timeout", time.Minute, "How long to wait for the hub to use the new token")
	return cmd
}

func (c *cli) rotate(cmd *cobra.Command, f *rotateFlags, name string) error {
	if f.duration != 0 && f.duration < minTokenDuration {
		return usage(cmd, "--token-duration %s: at least %s", f.duration, minTokenDuration)
	}
	ctx, cancel := limit(cmd, f.timeout)
	defer cancel()
	hub, err := c.hubClient()
	if err != nil {
		return err
	}
	request, found, err := c.existing(ctx, hub, name)
	if err != nil {
		return err
	}
	if err := found.check(name); err != nil {
		return err
	}
	if request.Account == "" {
		return access.Advise(fmt.Errorf("worker %s wasn't registered by this plugin: its token isn't known", name),
			"kubectl jobferry register "+name+" takes it over, with a new token")
	}
	worker, err := c.connectAs(ctx, cmd, &f.worker, found, &request)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("token-duration") {
		request.TokenDuration = f.duration
	}
	request.FormerAccount, request.Account = request.Account, registration.BaseName(request.HubUID)+"-"+utilrand.String(5)
	r := &registrar{cli: c, request: request, hub: hub, worker: worker}
	return r.swap(ctx)
}

// swap creates a new account, gives its token to the hub, and revokes the tokens of the old one:
// also those that somebody may have made with a stolen token.
func (r *registrar) swap(ctx context.Context) error {
	if err := r.putWorker(ctx); err != nil {
		return err
	}
	fresh, err := r.token(ctx)
	if err != nil {
		return err
	}
	if err := r.handOver(ctx, fresh); err != nil {
		return err
	}
	if err := r.waitUsed(ctx, fresh); err != nil {
		return err
	}
	if err := r.isCurrent(ctx); err != nil {
		return err
	}
	r.request.FormerAccount = ""
	if err := r.putWorker(ctx); err != nil {
		return err
	}
	return r.removeAccounts(ctx, r.worker, r.request.HubUID, r.request.Account)
}

// secret reads the hub's Secret.
func (r *registrar) secret(ctx context.Context) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	if err := r.hub.Get(ctx, types.NamespacedName{Namespace: r.request.Namespace, Name: r.request.Name}, secret); err != nil {
		return nil, fmt.Errorf("hub: %w", access.Explain(err))
	}
	return secret, nil
}

// handOver puts the token into the hub's Secret. It fails if that has changed since it was read.
func (r *registrar) handOver(ctx context.Context, fresh credentials) error {
	secret, err := r.secret(ctx)
	if err != nil {
		return err
	}
	kubeconfig, err := boundtoken.Replace(secret.Data[v1alpha1.KubeconfigKey], fresh.token)
	if err != nil {
		return access.Advise(fmt.Errorf("hub: Secret %s: %w", client.ObjectKeyFromObject(secret), err), "kubectl jobferry register replaces it")
	}
	next := r.request.Secret(kubeconfig)
	next.UID, next.ResourceVersion = secret.UID, secret.ResourceVersion
	return r.put(ctx, r.hub, "hub", next)
}

// isCurrent fails if the hub has another token. After a concurrent rotation, the token in use would
// be among those that are revoked.
func (r *registrar) isCurrent(ctx context.Context) error {
	secret, err := r.secret(ctx)
	if err != nil {
		return err
	}
	if secret.Annotations[v1alpha1.AnnotationAccount] != r.request.Account {
		return access.Advise(fmt.Errorf("somebody else wrote a new token into the hub's Secret %s: no token was revoked", client.ObjectKeyFromObject(secret)),
			"rotate again, when no other rotation runs")
	}
	return nil
}

const (
	// The API server sets labelLastUsed on a token Secret when the token is first used on a day.
	labelLastUsed = "kubernetes.io/legacy-token-last-used"
	// boundGrace is for bound tokens, whose use can't be observed. The manager reads a changed
	// Secret within milliseconds.
	boundGrace = 10 * time.Second
)

// waitUsed waits until the hub uses the new token.
func (r *registrar) waitUsed(ctx context.Context, fresh credentials) error {
	if !fresh.expires.IsZero() {
		r.say("The token expires at %s. Waiting %s before the old one is revoked.", fresh.expires.UTC().Format(time.RFC3339), boundGrace)
		if err := wake.Sleep(ctx, boundGrace); err != nil {
			return &pendingError{access.Advise(err, "the old token wasn't revoked: rotate again")}
		}
		return nil
	}
	key := types.NamespacedName{Namespace: v1alpha1.SystemNamespace, Name: r.request.Account}
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		var secret corev1.Secret
		err := r.worker.Get(ctx, key, &secret)
		return secret.Labels[labelLastUsed] != "", err
	})
	if canceled(err) {
		return &pendingError{access.Advise(fmt.Errorf("the hub's Secret has the new token, but nobody has used it yet: the old one wasn't revoked"),
			"check with kubectl jobferry clusters that the worker is Ready and the manager runs; then rotate again")}
	}
	if err != nil {
		return fmt.Errorf("worker: read Secret %s: %w", key, access.Explain(err))
	}
	return nil
}

// removeAccounts revokes the tokens of a hub in a worker, except those of one account.
func (c *cli) removeAccounts(ctx context.Context, worker client.Client, hub types.UID, keep string) error {
	return c.removeOf(ctx, worker, hub, v1alpha1.SystemNamespace, func(o client.Object) bool { return o.GetName() == keep },
		&corev1.SecretList{}, &corev1.ServiceAccountList{})
}
