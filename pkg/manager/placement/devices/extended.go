package devices

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// extended are a Pod's requests of extended resources that a DeviceClass stands for.
type extended struct {
	// requests for devices, by resource.
	requests map[corev1.ResourceName][]resourcev1.DeviceRequest
}

// extendedOf is nil if there are no such requests.
func (d *Devices) extendedOf(spec *corev1.PodSpec) *extended {
	e := &extended{requests: map[corev1.ResourceName][]resourcev1.DeviceRequest{}}
	for name, class := range d.backs {
		if requests := requestsOf(spec, name, class.Name); len(requests) > 0 {
			e.requests[name] = requests
		}
	}
	if len(e.requests) == 0 {
		return nil
	}
	return e
}

// requestsFor a node are those for which its allocatable has nothing.
func (e *extended) requestsFor(node *corev1.Node) []resourcev1.DeviceRequest {
	if e == nil {
		return nil
	}
	var requests []resourcev1.DeviceRequest
	for _, name := range slices.Sorted(maps.Keys(e.requests)) {
		if amount := node.Status.Allocatable[name]; amount.IsZero() {
			requests = append(requests, e.requests[name]...)
		}
	}
	return requests
}

// requestsOf a Pod for one resource: one for each container that runs until the Pod ends, and one
// for the init container that needs most beyond what the containers after it have.
func requestsOf(spec *corev1.PodSpec, name corev1.ResourceName, class string) []resourcev1.DeviceRequest {
	containers := slices.Concat(spec.InitContainers, spec.Containers)
	var requests []resourcev1.DeviceRequest
	add := func(index int, count int64) {
		if count > 0 {
			requests = append(requests, resourcev1.DeviceRequest{
				Name: fmt.Sprintf("container-%d-request-%d-%d", index, len(requests), count),
				Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
				},
			})
		}
	}
	lasting, most, mostAt := int64(0), int64(0), 0 // of the containers after this one; of init containers
	for i, c := range slices.Backward(containers) {
		count := amount(&c, name)
		if i < len(spec.InitContainers) && !sidecar(&c) {
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
