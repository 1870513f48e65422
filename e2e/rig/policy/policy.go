// Package policy makes policies of a cluster's admission, with their bindings, as the admins of
// worker clusters have them.
package policy

import (
	"fmt"
	"strings"
)

// Policy is one for Jobs, or for Pods.
type Policy struct {
	Name   string
	OfPods bool
}

// Refuses makes it one that refuses an operation, with a message.
func (p Policy) Refuses(operation, message string) string {
	return p.text("ValidatingAdmissionPolicy", operation, fmt.Sprintf(`
  validations:
  - {expression: "false", message: %s}`, message), ", validationActions: [Deny]")
}

// Mutates makes it one that changes Jobs that are created and changed, by CEL.
func (p Policy) Mutates(expression string) string {
	return p.text("MutatingAdmissionPolicy", "CREATE, UPDATE", fmt.Sprintf(`
  reinvocationPolicy: IfNeeded
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: '%s'}`, expression), "")
}

// Strips makes it one that removes labels and annotations, such as "labels example.com/a".
func (p Policy) Strips(marks ...string) string {
	var conditions, patches []string
	for _, mark := range marks {
		field, key, _ := strings.Cut(mark, " ")
		has := fmt.Sprintf(`(has(object.metadata.%[1]s) && "%[2]s" in object.metadata.%[1]s)`, field, key)
		conditions = append(conditions, has)
		patches = append(patches, fmt.Sprintf(
			`(%s ? [JSONPatch{op: "remove", path: "/metadata/%s/" + jsonpatch.escapeKey("%s")}] : [])`, has, field, key))
	}
	return p.text("MutatingAdmissionPolicy", "CREATE, UPDATE", fmt.Sprintf(`
  reinvocationPolicy: IfNeeded
  matchConditions:
  - {name: marked, expression: '%s'}
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '%s'}`, strings.Join(conditions, " || "), strings.Join(patches, " + ")), "")
}

func (p Policy) text(kind, operations, spec, binding string) string {
	of := "apiGroups: [batch], apiVersions: [v1], resources: [jobs]"
	if p.OfPods {
		of = `apiGroups: [""], apiVersions: [v1], resources: [pods]`
	}
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]s
metadata: {name: %[2]s}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
    - {%[6]s, operations: [%[3]s]}
%[4]s
---
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sBinding
metadata: {name: %[2]s}
spec: {policyName: %[2]s%[5]s}
`, kind, p.Name, operations, spec, binding, of)
}
