package placement_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/placement"
)

// question is a Job that is placed.
type question struct {
	name string
	// share of such Jobs among those of BenchmarkMix, in percent.
	share  int
	pods   int32
	change func(*corev1.PodTemplateSpec)
}

// wide is more Pods at once than any worker holds: the Job waits until one is idle.
const wide = 1 << 20

var questions = []question{
	{"plain", 42, 50, func(*corev1.PodTemplateSpec) {}},
	{"wider than all workers", 9, wide, func(*corev1.PodTemplateSpec) {}},
	{"selector", 20, 50, func(p *corev1.PodTemplateSpec) { p.Spec.NodeSelector = map[string]string{"disk": "ssd", "zone": "1"} }},
	{"spread", 6, 10, func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone") }},
	{"spread of its own", 4, 10, func(p *corev1.PodTemplateSpec) {
		spreadOver(p, "zone")
		p.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels = map[string]string{"job-name": "job"}
	}},
	{"spread over nodes", 3, 50, func(p *corev1.PodTemplateSpec) { spreadOver(p, corev1.LabelHostname) }},
	{"spread over both", 3, 50, func(p *corev1.PodTemplateSpec) { spreadOver(p, "zone", corev1.LabelHostname) }},
	{"anti-affinity", 4, 50, func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: alike(p, corev1.LabelHostname),
		}}
	}},
	{"devices", 3, 50, func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
	}},
	{"devices by template", 2, 50, func(p *corev1.PodTemplateSpec) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr.To("two")}}
	}},
	{"devices that all Pods share", 0, 20, func(p *corev1.PodTemplateSpec) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr.To("one")}}
	}},
	{"a bound volume", 1, 20, func(p *corev1.PodTemplateSpec) {
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk-1"},
		}}}
	}},
	{"volumes that are made", 2, 50, func(p *corev1.PodTemplateSpec) { ephemeral(p, "disk") }},
	{"local volumes", 0, 50, func(p *corev1.PodTemplateSpec) { ephemeral(p, "local") }},
	{"affinity", 1, 50, func(p *corev1.PodTemplateSpec) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: alike(p, "zone"),
		}}
	}},
}

func spreadOver(p *corev1.PodTemplateSpec, keys ...string) {
	p.Labels["app"] = "app-0"
	for _, key := range keys {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			MaxSkew: 3, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "app-0"}},
		})
	}
}

func ephemeral(p *corev1.PodTemplateSpec, class string) {
	p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
		VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claimOfVolume(class)},
	}}}}
}

func alike(p *corev1.PodTemplateSpec, key string) []corev1.PodAffinityTerm {
	p.Labels["app"] = "new"
	return []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "new"}}}}
}

func (q *question) request() placement.Request {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: "ns", UID: "uid"}}
	job.Spec.Parallelism, job.Spec.Completions = ptr.To(q.pods), ptr.To(q.pods)
	job.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}, Spec: oneCPU()}
	q.change(&job.Spec.Template)
	return placement.Request{Job: job}
}

// BenchmarkFleet places one Job of each sort in 100 workers of 100 nodes.
func BenchmarkFleet(b *testing.B) {
	clusters := fleet()
	for _, q := range questions {
		b.Run(q.name, func(b *testing.B) {
			request := q.request()
			first := placement.Place(request, clusters) // then devices and volumes are known
			if len(first.Unjudged) > 0 {
				b.Fatal(first.Explain())
			}
			b.ReportAllocs()
			began := busy(b)
			for b.Loop() {
				if d := placement.Place(request, clusters); (d.Cluster == "") != (q.pods == wide) {
					b.Fatal(d.Explain())
				}
			}
			b.ReportMetric((busy(b)-began).Seconds()*1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(first.Work*100, "%work/op")
		})
	}
}

// busy is for how long this goroutine's thread has had a CPU: other programs and the garbage
// collector's own threads don't count, what the collector has this goroutine do for it does.
func busy(b *testing.B) time.Duration {
	runtime.LockOSThread()
	var used unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Nano())
}

// BenchmarkMix places many Jobs in 100 workers of 100 nodes, one after the other, and says how long
// the median took, and one in a hundred, by the clock and in CPU time.
func BenchmarkMix(b *testing.B) {
	clusters := fleet()
	var mix []placement.Request
	for _, q := range questions {
		for range q.share {
			mix = append(mix, q.request())
		}
	}
	var took, used []time.Duration
	place := func(request placement.Request) {
		began, before := time.Now(), busy(b)
		placement.Place(request, clusters)
		took, used = append(took, time.Since(began)), append(used, busy(b)-before)
	}
	for _, request := range mix { // before anything is known of the workers' devices and volumes
		place(request)
	}
	first := slices.Max(took)
	took, used = nil, nil
	b.ReportAllocs()
	for b.Loop() {
		place(mix[len(took)*37%len(mix)])
	}
	b.ReportMetric(first.Seconds()*1000, "ms-first")
	report := func(times []time.Duration, unit string) {
		slices.Sort(times)
		b.ReportMetric(times[len(times)/2].Seconds()*1000, unit+"-median")
		b.ReportMetric(times[len(times)*99/100].Seconds()*1000, unit+"-p99")
	}
	report(took, "ms")
	report(used, "cpu-ms")
}
