// What DefaultPreemption makes of a pod that no node takes: `oracle -preempt`, see README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// nRepeated is how often two candidates are compared: a Go map's order tells apart those that are equally good.
const nRepeated = 64

type preemptAnswer struct {
	ID      string `json:"id"`
	Version string `json:"version"`
	// Feasible says that there is nothing to preempt for.
	Feasible bool `json:"feasible,omitempty"`
	// Message is the post-filter's, where there is one.
	Message string `json:"message,omitempty"`
	// Clears says whether the pod loses its nomination.
	Clears     bool               `json:"clears,omitempty"`
	Candidates map[string]victims `json:"candidates"`
	Best       []string           `json:"best"`
}

type victims struct {
	Pods       []string `json:"pods"`
	Violations int64    `json:"violations"`
}

// nominator holds the nominated pods of one case.
type nominator struct{ byNode map[string][]fwk.PodInfo }

func (n *nominator) AddNominatedPod(klog.Logger, fwk.PodInfo, *fwk.NominatingInfo) {}
func (n *nominator) DeleteNominatedPodIfExists(*v1.Pod)                            {}
func (n *nominator) UpdateNominatedPod(klog.Logger, *v1.Pod, fwk.PodInfo)          {}
func (n *nominator) NominatedPodsForNode(node string) []fwk.PodInfo                { return n.byNode[node] }

// stayInCycle has the plugin act before it answers, and not in a goroutine of its own.
func stayInCycle() error {
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{string(features.SchedulerAsyncPreemption): false})
}

// loadPreemption fills what only preemption looks at: the pods that are nominated, the budgets, the pod itself.
func (s *scheduler) loadPreemption(q *question) error {
	if q.Pod.UID == "" {
		q.Pod.UID = types.UID("oracle-incoming")
	}
	s.nominator.byNode = map[string][]fwk.PodInfo{}
	for i, p := range q.Pods {
		if p.UID == "" {
			p.UID = types.UID(fmt.Sprintf("oracle-%d", i))
		}
		if p.Spec.NodeName != "" || p.Status.NominatedNodeName == "" {
			continue
		}
		info, err := framework.NewPodInfo(p)
		if err != nil {
			return err
		}
		node := p.Status.NominatedNodeName
		s.nominator.byNode[node] = append(s.nominator.byNode[node], info)
	}
	return errors.Join(
		fill(s.factory.Core().V1().Pods().Informer().GetIndexer(), []*v1.Pod{q.Pod}, true),
		fill(s.factory.Policy().V1().PodDisruptionBudgets().Informer().GetIndexer(), q.PodDisruptionBudgets, true),
	)
}

// statuses does what findNodesThatFitPod does; nil if a node takes the pod.
func (s *scheduler) statuses(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) (*framework.NodeToStatus, error) {
	found := framework.NewDefaultNodeToStatus()
	only, status, by := s.framework.RunPreFilterPlugins(ctx, state, pod)
	if status.IsRejected() {
		found.SetAbsentNodesStatus(status)
		return found, nil
	}
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	if !only.AllNodes() {
		found.SetAbsentNodesStatus(absent(by))
	}
	for _, n := range nodes {
		node := n.Node().Name
		if !only.AllNodes() && !only.NodeNames.Has(node) {
			continue
		}
		status := s.framework.RunFilterPluginsWithNominatedPods(ctx, state, pod, n)
		if status.Code() == fwk.Error {
			return nil, status.AsError()
		}
		if status.IsSuccess() {
			return nil, nil
		}
		found.Set(node, status)
	}
	return found, nil
}

func (s *scheduler) preempt(ctx context.Context, q *question) (*preemptAnswer, error) {
	if q.Pod.Namespace == "" {
		q.Pod.Namespace = metav1.NamespaceDefault
	}
	if err := errors.Join(s.load(ctx, q), s.loadPreemption(q)); err != nil {
		return nil, err
	}
	a := &preemptAnswer{ID: q.ID, Version: release, Candidates: map[string]victims{}, Best: []string{}}
	nodes, err := s.lister.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	found, err := s.statuses(ctx, state, q.Pod, nodes)
	if err != nil || found == nil {
		a.Feasible = err == nil
		return a, err
	}
	plugin := s.plugins[names.DefaultPreemption].(*defaultpreemption.DefaultPreemption)
	plugin.Executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string) error {
		return nil
	}
	result, status := plugin.PostFilter(ctx, state.Clone(), q.Pod, found)
	if !status.IsSuccess() {
		a.Message, a.Clears = status.Message(), result != nil
		return a, nil
	}
	if err := s.candidates(ctx, state, q.Pod, found, plugin.Evaluator, a); err != nil {
		return nil, err
	}
	if !slices.Contains(a.Best, result.NominatedNodeName) {
		return nil, fmt.Errorf("the oracle is wrong: the plugin nominates %q, not one of %v", result.NominatedNodeName, a.Best)
	}
	return a, nil
}

// candidates runs dry over every node, where the plugin stops when it has enough, and tells all that are equally good.
func (s *scheduler) candidates(ctx context.Context, state fwk.CycleState, pod *v1.Pod, found *framework.NodeToStatus, ev *preemption.Evaluator, a *preemptAnswer) error {
	potential, err := found.NodesForStatusCode(s.lister.NodeInfos(), fwk.Unschedulable)
	if err != nil {
		return err
	}
	pdbs, err := ev.PdbLister.List(labels.Everything())
	if err != nil {
		return err
	}
	all, _, err := ev.DryRunPreemption(ctx, state, pod, potential, pdbs, 0, int32(len(potential)+1))
	if len(all) == 0 {
		return fmt.Errorf("the oracle is wrong: no candidate (%w)", err)
	}
	for _, c := range all {
		its := victims{Violations: c.Victims().NumPDBViolations}
		for _, p := range c.Victims().Pods {
			its.Pods = append(its.Pods, p.Namespace+"/"+p.Name)
		}
		a.Candidates[c.Name()] = its
	}
	best := ev.SelectCandidate(ctx, all)
	for _, c := range all {
		for range nRepeated {
			if ev.SelectCandidate(ctx, []preemption.Candidate{best, c}).Name() == c.Name() {
				a.Best = append(a.Best, c.Name())
				break
			}
		}
	}
	sort.Strings(a.Best)
	return nil
}
