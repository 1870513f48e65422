package devices

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
)

// extended are a Pod's requests of extended resources that a DeviceClass stands for.
type extended struct {
	// names of the resources, in order.
	names []corev1.ResourceName
	// requests for devices, by the index of the name.
	requests [][]resourcev1.DeviceRequest
}

// maxExtended bounds the resources of one Pod that are judged, with a bit for each.
const maxExtended = 16

// extendedOf is nil if there are no such requests.
func (d *Devices) extendedOf(spec *corev1.PodSpec) *extended {
	var e extended
	found := map[corev1.ResourceName]bool{}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			for _, list := range []corev1.ResourceList{containers[i].Resources.Requests, containers[i].Resources.Limits} {
				for name := range list {
					if d.Backs(name) {
						found[name] = true
					}
				}
			}
		}
	}
	if len(found) == 0 {
		return nil
	}
	e.names = slices.Sorted(maps.Keys(found))
	e.names = e.names[:min(len(e.names), maxExtended)]
	for _, name := range e.names {
		e.requests = append(e.requests, requestsOf(spec, name, d.backs[name].Name))
	}
	return &e
}

// lacking says of which of the resources a node's allocatable has nothing, with a bit for each.
func (e *extended) lacking(node *capacity.Node) uint64 {
	lacks := uint64(0)
	if e == nil {
		return lacks
	}
	for i, name := range e.names {
		if node.Allocatable.Get(name) == 0 {
			lacks |= 1 << i
		}
	}
	return lacks
}

// requestsFor what a node lacks.
func (e *extended) requestsFor(lacks uint64) []resourcev1.DeviceRequest {
	var requests []resourcev1.DeviceRequest
	for i := 0; lacks > 0; i, lacks = i+1, lacks>>1 {
		if lacks&1 > 0 {
			requests = append(requests, e.requests[i]...)
		}
	}
	return requests
}

// requestsOf a Pod for one resource: one for each container that runs until the Pod ends, and one
// for the init container that needs most beyond what the containers after it have. There may be
// very many containers: it's at most one request more than a claim can have, which is too many.
func requestsOf(spec *corev1.PodSpec, name corev1.ResourceName, class string) []resourcev1.DeviceRequest {
	var requests []resourcev1.DeviceRequest
	add := func(index int, count int64) {
		if count > 0 && len(requests) <= resourcev1.DeviceRequestsMaxSize {
			requests = append(requests, resourcev1.DeviceRequest{
				Name: fmt.Sprintf("container-%d-request-%d-%d", index, len(requests), count),
				Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
				},
			})
		}
	}
	// of the containers after this one; of init containers
	lasting, most, mostAt := int64(0), int64(0), 0
	inits := len(spec.InitContainers)
	at := func(i int) *corev1.Container {
		if i < inits {
			return &spec.InitContainers[i]
		}
		return &spec.Containers[i-inits]
	}
	for i := inits + len(spec.Containers) - 1; i >= 0; i-- {
		c := at(i)
		count := amount(c, name)
		if i < inits && !sidecar(c) {
			if count-lasting > most {
				most, mostAt = count-lasting, i
			}
			continue
		}
		lasting += count
		add(i, count)
	}
	add(mostAt, most)
	return requests
}

func sidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// amount that a container requests: limits stand in for requests that are left out.
func amount(c *corev1.Container, name corev1.ResourceName) int64 {
	quantity, has := c.Resources.Requests[name]
	if !has {
		quantity = c.Resources.Limits[name]
	}
	return quantity.Value()
}
