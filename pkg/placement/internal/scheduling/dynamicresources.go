package scheduling

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// Devices are what DynamicResources knows of a worker: its ResourceSlices, and which of their
// devices are allocated. Package devices has them.
type Devices interface {
	// Backs reports whether a DeviceClass stands for an extended resource, so that nodes needn't
	// have it in their allocatable.
	Backs(corev1.ResourceName) bool
	// Claimed is what quotas count of the claims that are made for one Pod from templates. Spend is
	// called for the requests that are read, and may panic.
	Claimed(namespace string, spec *corev1.PodSpec, spend func(requests int)) corev1.ResourceList
	// Trial tries to give devices to Pods of one spec. In an idle worker, only Pods that don't end
	// have devices. It is nil if such Pods need none. Charge, if it isn't nil, is called for the
	// microseconds that this takes, and returns how many are left.
	Trial(namespace string, spec *corev1.PodSpec, at Moment, charge func(microseconds int) (left int)) DeviceTrial
}

// DeviceTrial gives devices to one Pod after the other.
type DeviceTrial interface {
	// Coupled reports whether it matters on other nodes which devices the next Pod has.
	Coupled() bool
	// Stays reports whether a node that took a Pod takes the next one, too.
	Stays() bool
	// Slots is how many Pods find their devices on a node, at most so many, and why no more do. It is
	// not for a trial that is coupled.
	Slots(node *capacity.Node, most int64) (pods int64, refusal string)
	// Refuses says why the next Pod can't have its devices on a node; it is empty if it can.
	Refuses(*capacity.Node) string
	// Broken is an error that came with one of the nodes so far, and with which the scheduler gives up
	// the Pod, whatever other nodes have; it is empty if there was none.
	Broken() string
	// Take gives the next Pod its devices on a node that doesn't refuse it.
	Take(*capacity.Node)
	// Clone is a trial that goes on from here by itself.
	Clone() DeviceTrial
}

const devicesField = "spec.template.spec.resourceClaims or containers[].resources.requests"

// trial is nil if the Job's Pods need no devices, or these aren't known. Devices bound their own
// work, and a Job that is judged lightly pays for it.
func (v view) trial(j *Job) DeviceTrial {
	if v.Devices == nil || j.isBare {
		return nil
	}
	var charge func(int) int
	if j.lightly {
		charge = func(microseconds int) int {
			v.work.spend(microseconds*perMicrosecond, devicesField)
			return v.work.left / perMicrosecond
		}
	}
	return v.Devices.Trial(j.namespace, j.spec, v.moment, charge)
}

// deviceSlots is the part of the plugin DynamicResources that looks at a node alone.
func deviceSlots(trial DeviceTrial) filter {
	reasons := map[string]*Reason{}
	return func(p *place) *Reason {
		pods, refusal := trial.Slots(p.node.Node, p.slots)
		if refusal == "" {
			return nil
		}
		if reasons[refusal] == nil {
			reasons[refusal] = &Reason{"DynamicResources", refusal, devicesField}
		}
		if pods == 0 {
			return reasons[refusal]
		}
		p.allow(pods, reasons[refusal])
		return nil
	}
}

// devicesState passes the Pods on to a trial that is coupled.
type devicesState struct {
	eachNode
	trial DeviceTrial
}

func (s *devicesState) check(p *place) *Reason {
	if message := s.trial.Refuses(p.node.Node); message != "" {
		return &Reason{"DynamicResources", message, devicesField}
	}
	return nil
}

// fails asks about all places, as the scheduler does: an error with one of them is the end. In the
// view ever, what errs may be gone.
func (s *devicesState) fails(v view, places []place, states []state) *Reason {
	if v.moment == Ever {
		return nil
	}
	for i := range places {
		reasonOf(states, &places[i])
		if message := s.trial.Broken(); message != "" {
			return &Reason{"DynamicResources", message, devicesField}
		}
	}
	return nil
}

// coupled reports whether it matters which nodes come first.
func (s *devicesState) coupled() bool { return s.trial.Coupled() }

// add allocates a shared claim with the first Pod: then other nodes may have what they need, too.
func (s *devicesState) add(p *place) bool {
	coupled := s.trial.Coupled()
	s.trial.Take(p.node.Node)
	return coupled
}

func (s *devicesState) stays() bool { return s.trial.Stays() }

func (s *devicesState) clone() state { return &devicesState{s.eachNode, s.trial.Clone()} }
