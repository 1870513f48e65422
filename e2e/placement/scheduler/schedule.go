package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

// scene is a worker at one moment.
type scene struct {
	nodes []*corev1.Node
	// running Pods, and new ones that are to be scheduled.
	running, new []*corev1.Pod
	// preemption: new Pods may preempt others.
	preemption bool
	// again: Pods that find no node are tried again when others have been bound.
	again bool
	// bound are the names of those that are.
	bound []string
	objects
}

// schedule binds one Pod after the other, and counts those for which there was a node.
func (sc *scene) schedule(ctx context.Context) (bound int64, message string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := newScheduler(ctx, &sc.objects)
	if err != nil {
		return 0, "", err
	}
	logger := klog.FromContext(ctx)
	for _, n := range sc.nodes {
		s.Cache.AddNode(logger, n)
	}
	for _, p := range sc.running {
		if err := s.Cache.AddPod(logger, p); err != nil {
			return 0, "", err
		}
	}
	if sc.preemption {
		if err := s.mayPreempt(sc.running); err != nil {
			return 0, "", err
		}
	}
	for left := sc.new; len(left) > 0; {
		var refused []*corev1.Pod
		for _, p := range left {
			refusal, err := s.bind(ctx, p)
			if err != nil {
				return bound, message, err
			}
			if refusal != "" {
				message, refused = refusal, append(refused, p)
				continue
			}
			bound++
			sc.bound = append(sc.bound, p.Name)
		}
		if !sc.again || len(refused) == len(left) {
			break
		}
		left = refused
	}
	return bound, message, nil
}

// oneWorker is a scheduler for which nothing else happens.
type oneWorker struct {
	*scheduler.Scheduler
	framework framework.Framework
	client    *fake.Clientset
	// victims are the Pods that may be preempted, by their UIDs; nil: none may.
	victims   map[types.UID]*corev1.Pod
	informers informers.SharedInformerFactory
	known     *objects
	// made are the claims for which volumes are to be made.
	made []*corev1.PersistentVolumeClaim
}

func newScheduler(ctx context.Context, known *objects) (*oneWorker, error) {
	client := fake.NewClientset(known.written()...)
	factory := informers.NewSharedInformerFactory(client, 0)
	if err := known.tell(factory); err != nil {
		return nil, err
	}
	profiles, err := profilesOfOne()
	if err != nil {
		return nil, err
	}
	recorder := profile.NewRecorderFactory(events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()}))
	w := &oneWorker{client: client, informers: factory, known: known}
	s, err := scheduler.New(ctx, client, factory, nil, recorder, scheduler.WithProfiles(profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(frameworkruntime.Registry{volumePlugin: noting(volumebinding.New, &w.made)}))
	if err != nil {
		return nil, err
	}
	w.Scheduler, w.framework = s, s.Profiles[corev1.DefaultSchedulerName]
	return w, nil
}

// profilesOfOne are the default ones, with our VolumeBinding, which doesn't wait until a controller
// has bound volumes.
func profilesOfOne() ([]config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	for i := range defaults.Profiles {
		plugins := defaults.Profiles[i].Plugins
		for k := range plugins.MultiPoint.Enabled {
			if p := &plugins.MultiPoint.Enabled[k]; p.Name == names.VolumeBinding {
				p.Name = volumePlugin
			}
		}
		for k := range defaults.Profiles[i].PluginConfig {
			if c := &defaults.Profiles[i].PluginConfig[k]; c.Name == names.VolumeBinding {
				c.Name = volumePlugin
			}
		}
		plugins.PreBind.Disabled = append(plugins.PreBind.Disabled, config.Plugin{Name: volumePlugin})
	}
	return defaults.Profiles, nil
}

// bind returns why there is no node for a Pod.
func (s *oneWorker) bind(ctx context.Context, pod *corev1.Pod) (refusal string, err error) {
	state := framework.NewCycleState()
	node, err := s.nodeFor(ctx, state, pod)
	if refused, is := errors.AsType[*framework.FitError](err); is {
		if made, err := s.preempt(ctx, state, pod, refused); !made || err != nil {
			return refused.Error(), err
		}
		return s.bind(ctx, pod)
	} else if errors.Is(err, scheduler.ErrNoNodesAvailable) || errors.Is(err, errPlugin) {
		return err.Error(), nil
	} else if err != nil {
		return "", err
	}
	there := pod.DeepCopy()
	there.Spec.NodeName = node
	if err := s.framework.RunReservePluginsReserve(ctx, state, there, node).AsError(); err != nil {
		return "", fmt.Errorf("reserve: %w", err)
	}
	if err := s.provision(); err != nil {
		return "", err
	}
	// Only claims that Pods share must be written: those of one Pod are known to be pending.
	if slices.ContainsFunc(pod.Spec.ResourceClaims, func(c corev1.PodResourceClaim) bool { return c.ResourceClaimName != nil }) {
		if err := s.framework.RunPreBindPlugins(ctx, state, there, node).AsError(); err != nil {
			return "", fmt.Errorf("bind: %w", err)
		}
	}
	return "", s.Cache.AddPod(klog.FromContext(ctx), there)
}

// provision makes the volumes that the last Pod needs.
func (s *oneWorker) provision() error {
	for _, claim := range s.made {
		for _, class := range s.known.StorageClasses {
			if class.Name == *claim.Spec.StorageClassName {
				pv, bound := provision(claim, class)
				if err := errors.Join(set(s.informers, pv), set(s.informers, bound)); err != nil {
					return err
				}
			}
		}
	}
	s.made = nil
	return nil
}

// errPlugin is an error of a plugin: the scheduler tries the Pod again later, and fails again.
var errPlugin = errors.New("a plugin failed")

// nodeFor is the scheduler's choice.
func (s *oneWorker) nodeFor(ctx context.Context, state fwk.CycleState, pod *corev1.Pod) (string, error) {
	snapshot, is := s.framework.SnapshotSharedLister().(*cache.Snapshot)
	if !is {
		return "", fmt.Errorf("the scheduler's snapshot is a %T", s.framework.SnapshotSharedLister())
	}
	if err := s.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		return "", err
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return "", err
	}
	var result scheduler.ScheduleResult
	switch schedulePod := any(s.SchedulePod).(type) {
	case func(context.Context, framework.Framework, fwk.CycleState, *corev1.Pod) (scheduler.ScheduleResult, error): // until 1.34
		result, err = schedulePod(ctx, s.framework, state, pod)
	case func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (scheduler.ScheduleResult, error):
		result, err = schedulePod(ctx, s.framework, state, &framework.QueuedPodInfo{PodInfo: info})
	default:
		return "", fmt.Errorf("this release's SchedulePod is a %T", schedulePod)
	}
	if err != nil && strings.HasPrefix(err.Error(), "running ") {
		err = fmt.Errorf("%w: %w", errPlugin, err)
	}
	return result.SuggestedHost, err
}
