package placement

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/placement/internal/autoscaling"
	"github.com/jobferry/jobferry/pkg/placement/internal/capacity"
	"github.com/jobferry/jobferry/pkg/placement/internal/change"
	"github.com/jobferry/jobferry/pkg/placement/internal/devices"
	"github.com/jobferry/jobferry/pkg/placement/internal/objects"
	"github.com/jobferry/jobferry/pkg/placement/internal/scheduling"
)

// What others use of the packages below internal.
type (
	Admission     = scheduling.Admission
	Answer        = scheduling.Answer
	Capacity      = capacity.Capacity
	Change        = change.Change
	ChangeKinds   = change.Kinds
	ChangeSet     = change.Set
	Changes       = change.Sets
	Demands       = capacity.Demands
	DeviceObjects = devices.Objects
	Devices       = scheduling.Devices
	Growth        = autoscaling.Growth
	JudgedDevices = devices.Devices
	JudgedNode    = scheduling.Node
	Launches      = autoscaling.Launches
	Ledger        = capacity.Ledger
	Node          = capacity.Node
	NodeClaim     = autoscaling.NodeClaim
	NodeGroup     = autoscaling.NodeGroup
	NodePool      = autoscaling.NodePool
	Observed      = autoscaling.Observed
	Offers        = autoscaling.Offers
	Outcome       = autoscaling.Outcome
	Pods          = scheduling.Pods
	Reads         = scheduling.Reads
	Report        = capacity.Report
	Resources     = capacity.Resources
	Room          = autoscaling.Room
	Shape         = capacity.Shape
	Snapshot      = scheduling.Snapshot
	Store         = objects.Store
	Totals        = capacity.Totals
	Verdict       = scheduling.Verdict
	Volumes       = scheduling.Volumes

	Kind[T metav1.Object] = objects.Kind[T]
)

// Constants of these.
const (
	AdmissionChange = change.Admission
	AnyChange       = change.All
	DevicesChange   = change.Devices
	NodesChange     = change.Nodes
	PodsChange      = change.Pods
	RoomChange      = change.Room
	VolumesChange   = change.Volumes

	ExtendedSince = devices.ExtendedSince
	Failed        = autoscaling.Failed
	Made          = autoscaling.Made
	MaxPools      = autoscaling.MaxPools
	Never         = scheduling.Never
	Pending       = autoscaling.Pending
	UnmadeClaims  = autoscaling.UnmadeClaims
)

// Functions of these, and reasons.
var (
	Extended                  = capacity.Extended
	GrowthOf                  = autoscaling.GrowthOf
	Judge                     = scheduling.Judge
	NamespacesListing         = &scheduling.NamespacesListing
	NewDevices                = devices.New
	NewJob                    = scheduling.NewJob
	NewLedger                 = capacity.New
	NewPods                   = scheduling.NewPods
	NewRoom                   = autoscaling.NewRoom
	NewSnapshot               = scheduling.NewSnapshot
	NewStore                  = objects.New
	Observe                   = autoscaling.Observe
	ReadNodeClaim             = autoscaling.ReadNodeClaim
	ReadNodeGroups            = autoscaling.ReadNodeGroups
	ReadNodePools             = autoscaling.ReadNodePools
	ReadsOf                   = scheduling.ReadsOf
	ResourcesOf               = capacity.ResourcesOf
	ShapeOf                   = capacity.ShapeOf
	SlimCSIDriver             = objects.SlimCSIDriver
	SlimCSINode               = objects.SlimCSINode
	SlimCSIStorageCapacity    = objects.SlimCSIStorageCapacity
	SlimClaim                 = objects.SlimClaim
	SlimDeviceClass           = objects.SlimDeviceClass
	SlimLimitRange            = objects.SlimLimitRange
	SlimNamespace             = objects.SlimNamespace
	SlimNode                  = capacity.SlimNode
	SlimPod                   = capacity.SlimPod
	SlimPriorityClass         = objects.SlimPriorityClass
	SlimQuota                 = objects.SlimQuota
	SlimResourceClaim         = objects.SlimResourceClaim
	SlimResourceClaimTemplate = objects.SlimResourceClaimTemplate
	SlimResourceSlice         = objects.SlimResourceSlice
	SlimRuntimeClass          = objects.SlimRuntimeClass
	SlimStorageClass          = objects.SlimStorageClass
	SlimVolume                = objects.SlimVolume
	TemplateRequests          = capacity.TemplateRequests
	ThatHelp                  = scheduling.ThatHelp
	VolumesListing            = &scheduling.VolumesListing
)
