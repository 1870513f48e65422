package pods

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"unique"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/jobferry/jobferry/pkg/util/ownwrite"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// shadows has the Pods on our Nodes, of which each Node has a watch. Own writes count until a watch
// is as new.
type shadows struct {
	config  *rest.Config
	options cache.Options
	// changed and gone are called with each Pod that the watch shows, or shows no more. They must not
	// block.
	changed, gone func(*shadow)

	mu      sync.Mutex
	nodes   map[string]*nodeWatch // by worker
	written map[types.NamespacedName]*shadow
	// jobs counts the shadows of each Job in each worker.
	jobs map[shadowsOf]int
}

// shadowsOf are those of a Job of the hub in a worker. A Pod may name the UID of any: it counts in
// its own namespace.
type shadowsOf struct {
	namespace string
	job       types.UID
	worker    unique.Handle[string]
}

type nodeWatch struct {
	store  toolscache.Store
	synced func() bool
	stop   context.CancelFunc
	done   chan struct{}
}

func newShadows(config *rest.Config, options cache.Options, changed, gone func(*shadow)) *shadows {
	return &shadows{
		config: config, options: options, changed: changed, gone: gone,
		nodes: map[string]*nodeWatch{}, written: map[types.NamespacedName]*shadow{}, jobs: map[shadowsOf]int{},
	}
}

// watch begins the watch of a worker's Node, unless there is one.
func (s *shadows) watch(ctx context.Context, worker string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[worker] != nil {
		return nil
	}
	options := s.options
	options.ByObject = map[client.Object]cache.ByObject{&corev1.Pod{}: {
		Field: fields.OneTermEqualSelector("spec.nodeName", nodeName(worker)),
		Transform: func(object any) (any, error) {
			if pod, is := object.(*corev1.Pod); is {
				return shadowOf(pod, worker), nil
			}
			return object, nil
		},
	}}
	of, err := pages.NewCache(s.config, options)
	if err != nil {
		return fmt.Errorf("pods on the node of worker %s: %w", worker, err)
	}
	informer, err := of.GetInformer(ctx, &corev1.Pod{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("pods on the node of worker %s: %w", worker, err)
	}
	if _, err := informer.AddEventHandler(s.handler()); err != nil {
		return fmt.Errorf("pods on the node of worker %s: %w", worker, err)
	}
	from, is := informer.(interface{ GetStore() toolscache.Store })
	if !is {
		return fmt.Errorf("the cache's informer is a %T", informer)
	}
	ctx, stop := context.WithCancel(ctx)
	w := &nodeWatch{store: from.GetStore(), synced: informer.HasSynced, stop: stop, done: make(chan struct{})}
	s.nodes[worker] = w
	go func() {
		defer close(w.done)
		if err := of.Start(ctx); err != nil {
			log.FromContext(ctx).Error(err, "Can't watch the Pods on the Node of a worker", "worker", worker)
		}
	}()
	return nil
}

// unwatch ends the watch of a worker's Node.
func (s *shadows) unwatch(worker string) {
	s.mu.Lock()
	w := s.nodes[worker]
	delete(s.nodes, worker)
	s.mu.Unlock()
	if w == nil {
		return
	}
	w.stop()
	<-w.done
	for _, object := range w.store.List() {
		s.leave(object)
	}
}

func (s *shadows) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if is, ok := object.(*shadow); ok {
				s.count(is, 1)
				s.seen(is)
			}
		},
		UpdateFunc: func(before, after any) {
			was, ok := before.(*shadow)
			is, also := after.(*shadow)
			if !ok || !also {
				return
			}
			if s.count(was, -1); was.uid != is.uid { // a deletion that the watch missed
				s.gone(was)
			}
			s.count(is, 1)
			s.seen(is)
		},
		DeleteFunc: s.leave,
	}
}

// seen has a Pod looked at, and drops an own write that isn't newer.
func (s *shadows) seen(is *shadow) {
	s.mu.Lock()
	if own := s.written[is.key]; own != nil && !ownwrite.NewerVersion(own.version, is.version) {
		delete(s.written, is.key)
	}
	s.mu.Unlock()
	s.changed(is)
}

func (s *shadows) leave(object any) {
	if tombstone, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = tombstone.Obj
	}
	was, ok := object.(*shadow)
	if !ok {
		return
	}
	s.count(was, -1)
	s.mu.Lock()
	if own := s.written[was.key]; own != nil && own.uid == was.uid {
		delete(s.written, was.key)
	}
	s.mu.Unlock()
	s.gone(was)
}

func (s *shadows) count(of *shadow, by int) {
	if of.job == "" {
		return
	}
	all := shadowsOf{of.key.Namespace, of.job, of.worker}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs[all] += by; s.jobs[all] <= 0 {
		delete(s.jobs, all)
	}
}

// of counts the shadows of a Job in a worker.
func (s *shadows) of(job *batchv1.Job, worker string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[shadowsOf{job.Namespace, job.UID, unique.Make(worker)}]
}

// wrote remembers the hub's answer to an own write.
func (s *shadows) wrote(answer *corev1.Pod, worker string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written[client.ObjectKeyFromObject(answer)] = shadowOf(answer, worker)
}

// get returns the Pod of a name on one of our Nodes; nil: there is none.
func (s *shadows) get(name types.NamespacedName) *shadow {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.nodes {
		if is := w.get(name); is != nil {
			return s.latest(name, is)
		}
	}
	return s.latest(name, nil)
}

// on is get for a Pod on the Node of one worker. It looks at no others.
func (s *shadows) on(worker string, name types.NamespacedName) *shadow {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.nodes[worker]
	if w == nil {
		return nil
	}
	return s.latest(name, w.get(name))
}

// get returns the Pod of a name, as the watch has it; nil: it has none.
func (w *nodeWatch) get(name types.NamespacedName) *shadow {
	object, _, _ := w.store.GetByKey(name.String()) // it fails for no key
	is, _ := object.(*shadow)
	return is
}

// latest returns what a watch has of a Pod, or what was written since. The caller holds the lock.
func (s *shadows) latest(name types.NamespacedName, is *shadow) *shadow {
	if own := s.written[name]; is == nil || own != nil && ownwrite.NewerVersion(own.version, is.version) {
		return own
	}
	return is
}

// synced reports whether all Pods on the Node of a worker are known.
func (s *shadows) synced(worker string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.nodes[worker]
	return w != nil && w.synced()
}

// all calls do with each Pod on our Nodes, as the watches have it.
func (s *shadows) all(do func(*shadow)) {
	s.mu.Lock()
	stores := make([]toolscache.Store, 0, len(s.nodes))
	for _, w := range s.nodes {
		stores = append(stores, w.store)
	}
	s.mu.Unlock()
	for _, store := range stores {
		for _, object := range store.List() {
			if is, ok := object.(*shadow); ok {
				do(is)
			}
		}
	}
}

// watched are the workers whose Nodes have a watch.
func (s *shadows) watched() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.nodes))
}

// number counts the shadows on the Node of a worker.
func (s *shadows) number(worker string) int {
	s.mu.Lock()
	w := s.nodes[worker]
	s.mu.Unlock()
	if w == nil {
		return 0
	}
	n := 0
	for _, object := range w.store.List() {
		if is, ok := object.(*shadow); ok && is.isShadow() {
			n++
		}
	}
	return n
}
