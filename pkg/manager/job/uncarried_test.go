package job

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
)

// doesWithout has the Pods of a Job name what they start without.
func doesWithout(job *batchv1.Job) {
	refersToSettings(job)
	env := job.Spec.Template.Spec.Containers[0].EnvFrom
	env[0].ConfigMapRef.Optional, env[1].SecretRef.Optional = ptr.To(true), ptr.To(true)
	job.Spec.Template.Spec.Subdomain = "peers"
}

func (w *world) notCarried() []string {
	return slices.DeleteFunc(slices.Clone(w.events), func(e string) bool { return !strings.HasPrefix(e, v1alpha1.EventNotCarried) })
}

// What a Job's Pods name and its worker lacks has an event each.
func TestWhatAWorkerLacks(t *testing.T) {
	peers := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: jobKey.Namespace, Name: "peers"}}
	settings := metav1.ObjectMeta{Namespace: jobKey.Namespace, Name: "settings"}
	forbidden := apierrors.NewForbidden(corev1.Resource("services"), "peers", errors.New("get"))
	rows := map[string]struct {
		has    []client.Object
		answer error // to reads in the worker; nil: it's what is there
		want   []string
	}{
		"nothing is there":          {want: []string{`service "peers" isn't there`, `configmap "settings" isn't there`, `secret "settings" isn't there`}},
		"one thing is":              {has: []client.Object{peers}, want: []string{`configmap "settings"`, `secret "settings"`}},
		"all is":                    {has: []client.Object{peers, &corev1.ConfigMap{ObjectMeta: settings}, &corev1.Secret{ObjectMeta: settings}}},
		"it can't be seen":          {answer: forbidden, want: []string{`service "peers" isn't copied, and the hub may not see`}},
		"the worker doesn't answer": {answer: apierrors.NewTimeoutError("slow", 1)},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for _, object := range row.has {
				if err := w.worker("a").api.others.Create(w.Context(), object.DeepCopyObject().(client.Object)); err != nil {
					w.Fatal(err)
				}
			}
			w.refuses = func(sent write) error {
				if sent.server == "a" && sent.verb == "get" {
					return row.answer
				}
				return nil
			}
			w.submits(aJob(jobKey.Name, doesWithout))
			w.step(10 * time.Minute)
			got := w.notCarried()
			if len(got) != len(row.want) {
				w.fail("events %q, want %q", got, row.want)
			}
			for i, text := range row.want {
				if !strings.Contains(got[i], "Worker a: "+text) {
					w.fail("event %q, want %q", got[i], text)
				}
			}
		})
	}
}

// What Pods wait for isn't looked for: the worker says that it isn't there.
func TestWhatPodsWaitForIsNotLookedFor(t *testing.T) {
	w := newWorld(t)
	w.refuses = func(sent write) error {
		if sent.server == "a" && sent.verb == "get" {
			w.fail("it's looked for")
		}
		return nil
	}
	w.submits(aJob(jobKey.Name, refersToSettings))
	w.step(time.Second)
	if !w.running("a") {
		w.fail("the Job doesn't run")
	}
}

// What many Jobs name is looked for once for all; so is what can't be seen.
func TestLooksForWhatAWorkerLacks(t *testing.T) {
	for name, c := range map[string]struct {
		answer error
		want   int
	}{
		"missing":   {want: 3},
		"forbidden": {answer: apierrors.NewForbidden(corev1.Resource("services"), "", errors.New("get")), want: 3},
	} {
		w, reads := newWorld(t), 0
		w.refuses = func(sent write) error {
			if sent.server != "a" || sent.verb != "get" {
				return nil
			}
			reads++
			return c.answer
		}
		for i := range 5 {
			w.submits(aJob(fmt.Sprint("train-", i), doesWithout, pods(1)))
		}
		w.step(time.Second)
		if reads != c.want {
			t.Errorf("%s: %d reads, want %d", name, reads, c.want)
		}
		if n := len(w.notCarried()); n == 0 || n%5 != 0 {
			t.Errorf("%s: %d events for 5 Jobs", name, n)
		}
	}
}
