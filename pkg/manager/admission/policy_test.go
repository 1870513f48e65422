package admission

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// policy is a ValidatingAdmissionPolicy of the chart, evaluated as the API server does it.
type policy struct {
	t         testing.TB
	validator validating.Validator
}

// loadPolicy reads a file of the chart, and compiles its policy.
func loadPolicy(t testing.TB, file string) policy {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "charts", "jobferry", "files", "admission", file))
	if err != nil {
		t.Fatal(err)
	}
	var found admissionregistrationv1.ValidatingAdmissionPolicy
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); found.Kind != "ValidatingAdmissionPolicy"; {
		if err := decoder.Decode(&found); errors.Is(err, io.EOF) {
			t.Fatalf("%s has no policy", file)
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return policy{t, compile(t, &found)}
}

func compile(t testing.TB, p *admissionregistrationv1.ValidatingAdmissionPolicy) validating.Validator {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))
	if err != nil {
		t.Fatal(err)
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	var variables []cel.NamedExpressionAccessor
	for _, v := range p.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: v.Name, Expression: v.Expression})
	}
	for _, v := range variables {
		if result := compiler.CompileAndStoreVariable(v, options, environment.StoredExpressions); result.Error != nil {
			t.Fatalf("variable %s: %v", v.GetName(), result.Error)
		}
	}
	var conditions, validations, messages []cel.ExpressionAccessor
	for i := range p.Spec.MatchConditions {
		conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
	}
	for _, v := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		messages = append(messages, &validating.MessageExpressionCondition{MessageExpression: v.MessageExpression})
	}
	evaluator := func(of []cel.ExpressionAccessor) cel.ConditionEvaluator {
		e := compiler.CompileCondition(of, options, environment.StoredExpressions)
		for _, err := range e.CompilationErrors() {
			t.Fatal(err)
		}
		return e
	}
	matcher := matchconditions.NewMatcher(evaluator(conditions), p.Spec.FailurePolicy, "policy", "validate", p.Name)
	return validating.NewValidator(evaluator(validations), matcher, evaluator(nil), evaluator(messages), p.Spec.FailurePolicy, nil)
}

// request is what is asked of the API server.
type request struct {
	user        string // default: somebody
	kind        string // jobs (default) or cronjobs
	subresource string
	object, old runtime.Object
	in          string            // the namespace; default: ns
	namespace   map[string]string // its labels; default: Jobs that name the dispatcher are allowed
}

// denied returns the messages of what a policy refuses; an expression that can't be evaluated ends
// the test.
func (p policy) denied(r request) (messages []string) {
	p.t.Helper()
	if r.user == "" {
		r.user = "somebody"
	}
	if r.in == "" {
		r.in = "ns"
	}
	if r.namespace == nil {
		r.namespace = map[string]string{v1alpha1.LabelDispatch: v1alpha1.DispatchAllowed}
	}
	kind, resource := "Job", "jobs"
	if r.kind == "cronjobs" {
		kind, resource = "CronJob", "cronjobs"
	}
	gvr := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: resource}
	gvk := schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: kind}
	operation, options := admission.Create, runtime.Object(&metav1.CreateOptions{})
	if r.old != nil {
		operation, options = admission.Update, &metav1.UpdateOptions{}
	}
	attributes := admission.NewAttributesRecord(r.object, r.old, gvk, r.in, "job", gvr, r.subresource, operation, options,
		false, &user.DefaultInfo{Name: r.user})
	versioned := &admission.VersionedAttributes{
		Attributes: attributes, VersionedKind: gvk,
		VersionedObject: admission.NewLazyObject(r.object), VersionedOldObject: admission.NewLazyObject(r.old),
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.in, Labels: r.namespace}}
	result := p.validator.Validate(context.Background(), gvr, versioned, nil, ns, apiservercel.RuntimeCELCostBudget, nil)
	for _, decision := range result.Decisions {
		if decision.Evaluation == validating.EvalError {
			p.t.Fatalf("evaluation: %s", decision.Message)
		}
		if decision.Action == validating.ActionDeny {
			messages = append(messages, decision.Message)
		}
	}
	return messages
}

// newJob makes a Job with a managedBy, unless that's empty, and annotations given as key, value,
// key, value.
func newJob(managedBy string, annotations ...string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}}
	if managedBy != "" {
		job.Spec.ManagedBy = &managedBy
	}
	for i := 0; i < len(annotations); i += 2 {
		metav1.SetMetaDataAnnotation(&job.ObjectMeta, annotations[i], annotations[i+1])
	}
	return job
}

// cron puts a Job into a CronJob's template.
func cron(job *batchv1.Job) *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.CronJobSpec{JobTemplate: batchv1.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: job.Annotations}, Spec: job.Spec,
		}},
	}
}
