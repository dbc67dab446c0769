/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The places of the pass's parts in clang's pipeline, from -O0 to link-time optimization. */
#include "pass.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#if LLVM_VERSION_MAJOR >= 22
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

using namespace llvm;

namespace weft
{
/* -mllvm -weft-yields=…, for clang after -fplugin= of this file. */
static cl::opt<Inserted> InsertedOption("weft-yields", cl::desc("Where activities yield"), cl::init(Inserted::Calls),
					cl::values(clEnumValN(Inserted::Calls, "calls", "around calls, and in loops"),
						   clEnumValN(Inserted::Loops, "loops", "in loops, and at entries")));

Inserted inserted()
{
	return InsertedOption;
}

void error(const Instruction &At, const Twine &Message)
{
	At.getContext().diagnose(DiagnosticInfoUnsupported(*At.getFunction(), Message, At.getDebugLoc()));
}

FunctionCallee runtime(Module &M, StringRef Name, Type *Result, ArrayRef<Type *> Parameters)
{
	FunctionCallee C = M.getOrInsertFunction(Name, FunctionType::get(Result, Parameters, false));

	if (auto *F = dyn_cast<Function>(C.getCallee()))
		F->setDoesNotThrow();
	return C;
}

GlobalVariable *hot(Module &M)
{
	LLVMContext &C = M.getContext();
	auto *G = M.getGlobalVariable(Hot);

	if (G)
		return G;
	return new GlobalVariable(M, ArrayType::get(Type::getInt8Ty(C), HotBytes), false, GlobalValue::ExternalLinkage,
				  nullptr, Hot, nullptr, GlobalValue::InitialExecTLSModel);
}

struct Twins : PassInfoMixin<Twins> {
	PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM)
	{
		auto &FAM = MAM.getResult<FunctionAnalysisManagerModuleProxy>(M).getManager();

		return makeTwins(M, FAM) ? PreservedAnalyses::none() : PreservedAnalyses::all();
	}
	static bool isRequired()
	{
		return true;
	}
};

static void registerPasses(PassBuilder &PB)
{
	PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, OptimizationLevel) { MPM.addPass(Twins()); });
	PB.registerVectorizerStartEPCallback(
	    [](FunctionPassManager &FPM, OptimizationLevel) { FPM.addPass(Strips()); });
	auto AtTheEnd = [](ModulePassManager &MPM, OptimizationLevel, auto...) {
		MPM.addPass(Choose());
		MPM.addPass(Lower());
	};
	PB.registerOptimizerLastEPCallback(AtTheEnd);
	PB.registerFullLinkTimeOptimizationEarlyEPCallback(
	    [](ModulePassManager &MPM, OptimizationLevel) { MPM.addPass(Join()); });
	PB.registerFullLinkTimeOptimizationLastEPCallback([](ModulePassManager &MPM, OptimizationLevel) {
		MPM.addPass(Prune());
		MPM.addPass(GlobalDCEPass());
	});
	PB.registerPipelineParsingCallback(
	    [](StringRef Name, ModulePassManager &MPM, ArrayRef<PassBuilder::PipelineElement>) {
		    if (Name == "weft-twins")
			    return MPM.addPass(Twins()), true;
		    if (Name == "weft-join")
			    return MPM.addPass(Join()), true;
		    if (Name == "weft-prune")
			    return MPM.addPass(Prune()), true;
		    if (Name == "weft-choose")
			    return MPM.addPass(Choose()), true;
		    if (Name == "weft-lower")
			    return MPM.addPass(Lower()), true;
		    return false;
	    });
	PB.registerPipelineParsingCallback(
	    [](StringRef Name, FunctionPassManager &FPM, ArrayRef<PassBuilder::PipelineElement>) {
		    return Name == "weft-strips" ? FPM.addPass(Strips()), true : false;
	    });
}
} // namespace weft

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo llvmGetPassPluginInfo()
{
	return {LLVM_PLUGIN_API_VERSION, "weft-activities", "0.1", weft::registerPasses};
}
