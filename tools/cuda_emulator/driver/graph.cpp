// Graphs: their nodes, and their executable form, which keeps copies of what the nodes do.
#include "graph.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace cuemu {
namespace {

struct Step {
    Action action;
    std::vector<size_t> after;  // indices of earlier steps
};
using Program = std::vector<Step>;

Program compile(const CUgraph_st& graph) {
    std::map<CUgraphNode, size_t> index;
    Program program;
    for (const auto& node : graph.nodes) {
        Step step{node->action, {}};
        for (CUgraphNode dependency : node->dependencies) step.after.push_back(index.at(dependency));
        index[node.get()] = program.size();
        program.push_back(std::move(step));
    }
    return program;
}

// Nodes were added after those they depend on. Where streams are late, any order that respects the edges may come.
CUresult run_program(const Program& program) {
    bool shuffled = streams_are_late();
    std::vector<bool> done(program.size());
    for (size_t n = 0; n < program.size(); n++) {
        size_t chosen = n;
        for (size_t i = 0, ready = 0; shuffled && i < program.size(); i++) {
            const auto& after = program[i].after;
            if (done[i] || !std::all_of(after.begin(), after.end(), [&](size_t k) { return done[k]; })) continue;
            if (random_number() % ++ready == 0) chosen = i;
        }
        done[chosen] = true;
        const Action& action = program[chosen].action;
        if (CUresult status = action.run ? action.run() : CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
}

int node_type(Kind kind) {
    switch (kind) {
        case Kind::kKernel: return 0;
        case Kind::kCopy: return 1;
        case Kind::kFill: return 2;
        case Kind::kHost: return 3;
        case Kind::kGraph: return 4;
        default: return 5;
    }
}

CUresult check(const char* call, CUgraph graph) {
    if (graph) return CUDA_SUCCESS;
    return error(CUDA_ERROR_INVALID_VALUE, std::string(call) + ": null graph");
}

// The customary answer of the calls that list things: how many there are, and the first `*count` of them.
template <class T>
CUresult list(const std::vector<T>& found, T* out, size_t* count) {
    if (!out) {
        *count = found.size();
        return CUDA_SUCCESS;
    }
    for (size_t i = 0; i < *count; i++) out[i] = i < found.size() ? found[i] : T{};
    *count = std::min(*count, found.size());
    return CUDA_SUCCESS;
}

}  // namespace
}  // namespace cuemu

// An update leaves launches that are queued alone.
struct CUgraphExec_st {
    std::shared_ptr<const cuemu::Program> program;
    unsigned long long flags;
};

using namespace cuemu;

CUEMU_API cuGraphCreate(CUgraph* graph, unsigned) {
    *graph = new CUgraph_st;
    return CUDA_SUCCESS;
}

CUEMU_API cuGraphDestroy(CUgraph graph) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphDestroy", graph)) return status;
    delete graph;
    return CUDA_SUCCESS;
}

CUEMU_API cuGraphClone(CUgraph* clone, CUgraph graph) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphClone", graph)) return status;
    std::map<CUgraphNode, CUgraphNode> copies;
    *clone = new CUgraph_st;
    for (const auto& node : graph->nodes) {
        auto* copy = new CUgraphNode_st{*clone, node->action, {}};
        for (CUgraphNode dependency : node->dependencies) copy->dependencies.push_back(copies.at(dependency));
        copies[node.get()] = copy;
        (*clone)->nodes.emplace_back(copy);
    }
    return CUDA_SUCCESS;
}

CUEMU_API cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphAddEmptyNode", graph)) return status;
    Action nothing{Kind::kEmpty, "empty", nullptr};
    graph->nodes.emplace_back(new CUgraphNode_st{graph, nothing, {dependencies, dependencies + count}});
    *node = graph->nodes.back().get();
    return CUDA_SUCCESS;
}

CUEMU_API cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphGetNodes", graph)) return status;
    std::vector<CUgraphNode> found;
    for (const auto& node : graph->nodes) found.push_back(node.get());
    return list(found, nodes, count);
}

CUEMU_API cuGraphGetRootNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphGetRootNodes", graph)) return status;
    std::vector<CUgraphNode> found;
    for (const auto& node : graph->nodes) {
        if (node->dependencies.empty()) found.push_back(node.get());
    }
    return list(found, nodes, count);
}

CUEMU_API cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, size_t* count) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphGetEdges", graph)) return status;
    std::vector<CUgraphNode> sources, targets;
    for (const auto& node : graph->nodes) {
        for (CUgraphNode dependency : node->dependencies) {
            sources.push_back(dependency);
            targets.push_back(node.get());
        }
    }
    size_t both = *count;
    list(sources, from, &both);
    return list(targets, to, count);
}
CUEMU_API cuGraphGetEdges_v2(CUgraph graph, CUgraphNode* from, CUgraphNode* to, void*, size_t* count) {
    return cuGraphGetEdges(graph, from, to, count);
}

CUEMU_API cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode* nodes, size_t* count) {
    Guard guard(driver_mutex);
    return list(node->dependencies, nodes, count);
}
CUEMU_API cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode* nodes, void*, size_t* count) {
    return cuGraphNodeGetDependencies(node, nodes, count);
}

CUEMU_API cuGraphNodeGetType(CUgraphNode node, int* type) {
    *type = node_type(node->action.kind);
    return CUDA_SUCCESS;
}

CUEMU_API cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long flags) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphInstantiate", graph)) return status;
    *executable = new CUgraphExec_st{std::make_shared<const Program>(compile(*graph)), flags};
    return CUDA_SUCCESS;
}

struct InstantiateParameters {
    unsigned long long flags;
    CUstream upload_stream;
    CUgraphNode error_node;
    int result;
};
CUEMU_API cuGraphInstantiateWithParams(CUgraphExec* executable, CUgraph graph, InstantiateParameters* parameters) {
    parameters->error_node = nullptr;
    parameters->result = 0;
    return cuGraphInstantiateWithFlags(executable, graph, parameters->flags);
}
CUEMU_API cuGraphInstantiate_v2(CUgraphExec* executable, CUgraph graph, CUgraphNode*, char*, size_t) {
    return cuGraphInstantiateWithFlags(executable, graph, 0);
}
CUEMU_API cuGraphInstantiate(CUgraphExec* executable, CUgraph graph, CUgraphNode*, char*, size_t) {
    return cuGraphInstantiateWithFlags(executable, graph, 0);
}

CUEMU_API cuGraphExecGetFlags(CUgraphExec executable, unsigned long long* flags) {
    *flags = executable->flags;
    return CUDA_SUCCESS;
}

CUEMU_API cuGraphUpload(CUgraphExec, CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    return find_stream("cuGraphUpload", handle, &stream);
}

CUEMU_API cuGraphLaunch(CUgraphExec executable, CUstream handle) {
    Guard guard(driver_mutex);
    CUstream stream;
    if (CUresult status = find_stream("cuGraphLaunch", handle, &stream)) return status;
    if (!executable) return error(CUDA_ERROR_INVALID_VALUE, "cuGraphLaunch: null graph");
    auto program = executable->program;
    return submit(stream, {Kind::kGraph, "cuGraphLaunch", [program] { return run_program(*program); }});
}

CUEMU_API cuGraphExecDestroy(CUgraphExec executable) {
    Guard guard(driver_mutex);
    if (!executable) return error(CUDA_ERROR_INVALID_VALUE, "cuGraphExecDestroy: null graph");
    delete executable;
    return CUDA_SUCCESS;
}

// The new graph has to have the same nodes, by kind and dependencies; what they do may differ.
struct UpdateResult {
    int result;
    CUgraphNode error_node, error_from_node;
};
CUEMU_API cuGraphExecUpdate_v2(CUgraphExec executable, CUgraph graph, UpdateResult* info) {
    constexpr int kTopologyChanged = 2, kNodeTypeChanged = 3;
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphExecUpdate", graph)) return status;
    Program program = compile(*graph);
    const Program& present = *executable->program;
    *info = {0, nullptr, nullptr};
    if (program.size() != present.size()) info->result = kTopologyChanged;
    for (size_t i = 0; !info->result && i < program.size(); i++) {
        if (program[i].after != present[i].after) info->result = kTopologyChanged;
        if (program[i].action.kind != present[i].action.kind) info->result = kNodeTypeChanged;
        if (info->result) info->error_node = graph->nodes[i].get();
    }
    if (info->result) return error(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, "cuGraphExecUpdate: the graph has changed");
    executable->program = std::make_shared<const Program>(std::move(program));
    return CUDA_SUCCESS;
}

CUEMU_API cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned) {
    Guard guard(driver_mutex);
    if (CUresult status = check("cuGraphDebugDotPrint", graph)) return status;
    FILE* file = std::fopen(path, "w");
    if (!file) return error(CUDA_ERROR_INVALID_VALUE, std::string("cuGraphDebugDotPrint: cannot write ") + path);
    std::fprintf(file, "digraph {\n");
    Program program = compile(*graph);
    for (size_t i = 0; i < program.size(); i++) {
        std::fprintf(file, "  n%zu [label=\"%s\"];\n", i, program[i].action.name);
        for (size_t k : program[i].after) std::fprintf(file, "  n%zu -> n%zu;\n", k, i);
    }
    std::fprintf(file, "}\n");
    std::fclose(file);
    return CUDA_SUCCESS;
}
