package inject

import (
	"context"
	"fmt"
	"strings"

	"github.com/jobferry/jobferry/e2e/chaos/fleet"
	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// policyName is that of a worker's policy. It has one at a time.
const policyName = "chaos"

// policyOf is a policy of a worker's admission for the Jobs that it has of the hub, with its
// binding.
func policyOf(kind, operations, spec, binding string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]s
metadata: {name: %[2]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[3]s}}
    resourceRules:
    - {apiGroups: [batch], apiVersions: [v1], operations: [%[4]s], resources: [jobs]}
%[5]s
---
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sBinding
metadata: {name: %[2]s}
spec: {policyName: %[2]s%[6]s}
`, kind, policyName, fleet.Namespace, operations, spec, binding)
}

// refuses is a policy that refuses operations.
func refuses(operation string) string {
	return policyOf("ValidatingAdmissionPolicy", operation, `
  validations:
  - {expression: "false", message: not in this cluster}`, ", validationActions: [Deny]")
}

// mutates is a policy that changes Jobs that are created and changed, by CEL.
func mutates(expression string) string {
	return policyOf("MutatingAdmissionPolicy", "CREATE, UPDATE", fmt.Sprintf(`
  reinvocationPolicy: IfNeeded
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: '%s'}`, expression), "")
}

// strips is a policy that removes marks of Jobferry.
func strips(marks ...string) string {
	var conditions, patches []string
	for _, mark := range marks {
		field, key, _ := strings.Cut(mark, " ")
		has := fmt.Sprintf(`(has(object.metadata.%[1]s) && "%[2]s" in object.metadata.%[1]s)`, field, key)
		conditions = append(conditions, has)
		patches = append(patches, fmt.Sprintf(
			`(%s ? [JSONPatch{op: "remove", path: "/metadata/%s/" + jsonpatch.escapeKey("%s")}] : [])`, has, field, key))
	}
	return policyOf("MutatingAdmissionPolicy", "CREATE, UPDATE", fmt.Sprintf(`
  reinvocationPolicy: IfNeeded
  matchConditions:
  - {name: marked, expression: '%s'}
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '%s'}`, strings.Join(conditions, " || "), strings.Join(patches, " + ")), "")
}

// theMarks are those by which the manager knows a mirror: single ones, and both.
var theMarks = [][]string{{originMark}, {hubUIDMark}, {originMark, hubUIDMark}}

const (
	originMark = "labels " + v1alpha1.LabelOrigin
	hubUIDMark = "annotations " + v1alpha1.AnnotationHubUID
)

// marks are those that a fault removes.
func (f fault) marks() []string { return theMarks[f.Number%len(theMarks)] }

// policy has a worker's admission follow a policy, and no more.
func (f fault) policy(text string) (func() error, error) {
	do := func(ctx context.Context, args ...string) error {
		return retry(ctx, func() error {
			_, err := f.worker().Kubectl(ctx, text, args...)
			return err
		})
	}
	return func() error {
		return do(context.WithoutCancel(f.ctx), "delete", "--ignore-not-found", "-f", "-")
	}, do(f.ctx, "apply", "-f", "-")
}
