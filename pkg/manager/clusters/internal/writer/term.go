package writer

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/util/retry"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

const (
	// Interval is the time between two renewals of a Lease.
	Interval = 10 * time.Second
	// duration is what a Lease says of how long it lasts without a renewal. Who holds it is asked
	// for much longer than that.
	duration = 4 * Interval
	// maxTerms bounds how many Terms a hub remembers: the last that were added.
	maxTerms = 50
)

// Stamp says who renewed a Lease, and when in its Term.
type Stamp struct {
	// Holder is the leader's name, which no other process ever has.
	Holder string
	// Count grows while the holder leads.
	Count int64
}

// Term is the time in which this process leads its hub.
type Term struct {
	live      client.Reader // past the cache
	hub       client.Writer
	namespace string
	clock     clock.WithTicker

	mu sync.Mutex
	// own has no count before the Term has begun.
	own    Stamp
	before []Stamp // as of Begin, the newest last
	// refused says that the hub doesn't let this process begin: it leads without a Term.
	refused string
}

// NewTerm makes the Term of a process that may lead the hub. It reads past the cache.
func NewTerm(live client.Reader, hub client.Writer, namespace string, clock clock.WithTicker) *Term {
	host, err := os.Hostname()
	if err != nil || !isHolder(host) {
		host = "jobferry-manager"
	}
	return &Term{live: live, hub: hub, namespace: namespace, clock: clock, own: Stamp{Holder: host + "_" + string(uuid.NewUUID())}}
}

// Begin reads the Terms before this one, and adds it. That the hub forbids it is no error: Run
// tries again.
func (t *Term) Begin(ctx context.Context) error {
	err := t.count(ctx)
	if !apierrors.IsForbidden(err) {
		return err
	}
	klog.FromContext(ctx).Error(err, "No worker is guarded against a copy of this hub: upgrade the chart, whose role allows it")
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refused = "the manager may not write the Lease " + v1alpha1.HubWriterLease + " in its own namespace: upgrade the chart"
	return nil
}

// Run counts on until the context ends.
func (t *Term) Run(ctx context.Context) {
	ticker := t.clock.NewTicker(Interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if err := t.count(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Info("The Lease of the hub's writer wasn't renewed, will try again", "err", err)
		}
	}
}

// count has the hub know the next count before any worker does.
func (t *Term) count(ctx context.Context) error {
	next := t.stamp()
	next.Count++
	return t.save(ctx, next)
}

// save writes a Stamp of this Term into the hub's Lease, then uses it.
func (t *Term) save(ctx context.Context, own Stamp) error {
	ctx, cancel := context.WithTimeout(ctx, Interval)
	defer cancel()
	return retry.OnError(retry.DefaultBackoff, isRace, func() error {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: v1alpha1.HubWriterLease}}
		write := func() error { return t.hub.Update(ctx, lease) }
		if err := t.live.Get(ctx, client.ObjectKeyFromObject(lease), lease); apierrors.IsNotFound(err) {
			write = func() error { return t.hub.Create(ctx, lease) }
		} else if err != nil {
			return fmt.Errorf("read Lease %s/%s of the hub: %w", t.namespace, lease.Name, err)
		}
		all := readTerms(lease.Annotations[v1alpha1.AnnotationTerms])
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, v1alpha1.AnnotationTerms, termsWith(all, own))
		lease.Spec = specOf(own, t.clock.Now())
		if err := write(); err != nil {
			return fmt.Errorf("write Lease %s/%s of the hub: %w", t.namespace, lease.Name, err)
		}
		t.saved(own, all)
		return nil
	})
}

// saved takes over a Stamp, and with the first one the Terms that were before.
func (t *Term) saved(own Stamp, all []Stamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.own.Count == 0 {
		t.before = all
	}
	t.own, t.refused = own, ""
}

// begun reports whether the Term has begun, or why it's led without one.
func (t *Term) begun() (begun bool, refused string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own.Count > 0, t.refused
}

// isRace reports whether somebody else wrote the Lease meanwhile.
func isRace(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

func (t *Term) stamp() Stamp {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.own
}

// knows reports whether a Stamp is of an earlier leader of this hub.
func (t *Term) knows(s Stamp) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range t.before {
		if b.Holder == s.Holder {
			return s.Count <= b.Count
		}
	}
	return false
}

func specOf(s Stamp, now time.Time) coordinationv1.LeaseSpec {
	return coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(s.Holder), LeaseDurationSeconds: ptr.To(int32(duration / time.Second)),
		RenewTime: &metav1.MicroTime{Time: now},
	}
}

// termsWith is the text of Terms, with one at its place or added.
func termsWith(all []Stamp, own Stamp) string {
	var lines []string
	is := false
	for _, s := range all {
		if s.Holder == own.Holder {
			s, is = own, true
		}
		lines = append(lines, s.String())
	}
	if !is {
		lines = append(lines, own.String())
	}
	return strings.Join(lines[max(len(lines)-maxTerms, 0):], "\n")
}

// String is a Stamp in a line.
func (s Stamp) String() string { return s.Holder + " " + strconv.FormatInt(s.Count, 10) }

// readTerms reads the lines that are Stamps.
func readTerms(text string) (all []Stamp) {
	for line := range strings.Lines(text) {
		if s, is := readStamp(strings.TrimSpace(line)); is {
			all = append(all, s)
		}
	}
	return all
}

func readStamp(line string) (s Stamp, is bool) {
	holder, count, found := strings.Cut(line, " ")
	n, err := strconv.ParseInt(count, 10, 64)
	return Stamp{holder, n}, found && err == nil && holder != ""
}
